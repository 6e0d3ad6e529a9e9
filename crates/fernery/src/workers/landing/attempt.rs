//! One try to land a patch that an operator wants on its base branch: tip plus patch in a private clone, the gates again on
//! that tree, a commit, and the branch moves from the tip that was read to the commit, or not at all.
//!
//! Where it moves is written down before it moves. Whoever comes after a crash looks whether the branch has that commit.

use super::Lander;
use super::candidate::{Made, Reviewed, make};
use crate::workers::gate::trial::{Trial, author_of, subject_of};
use crate::workers::leftovers::gate_folder;
use fernery_core::blueprint::{Land, MergeAs};
use fernery_core::names::showable;
use fernery_core::pipeline::approval::Decision;
use fernery_core::pipeline::judging::{Verdict, verdict};
use fernery_core::pipeline::landing::{Fit, Stopped, no_branch, not_looked_at};
use fernery_engine::pipeline::landing::{self, Concluded, Landing, LandingEnd, NextLanding};
use fernery_engine::pipeline::reading;
use fernery_engine::{StoreError, door};
use fernery_exec::git::applied_patch::{AppliedPatch, NotApplied, Saying};
use fernery_exec::git::call::GitError;
use fernery_exec::git::landing::{Move, Moved, advance, bring, has, is_symbolic};
use fernery_exec::git::merging::{Candidate, Merged, merge, short};
use fernery_exec::git::repository::Repository;
use fernery_exec::git::work_tree::{Followed, follow};

/// How often the branch may move under one try.
const ROUNDS_MAX: usize = 5;

/// Everything about one landing.
struct Case {
    landing: Landing,
    reviewed: Reviewed,
    land: Land,
    /// The record of the merge.
    decision: Decision,
    repository: Repository,
}

/// What came of one round.
enum Round {
    Ended(LandingEnd),
    /// The branch moved meanwhile.
    Again,
    /// Somebody has taken over.
    ClaimLost,
}

impl Round {
    fn stopped(why: impl Into<String>, rework: bool) -> Self {
        let stopped = Stopped { why: why.into(), rework };
        Self::Ended(LandingEnd::Stopped { stopped, files: Vec::new(), tried: None })
    }

    /// As [`Self::stopped`], on this tip.
    fn stopped_on(tip: &str, fit: Option<Fit>, why: String, rework: bool) -> Self {
        let (stopped, tried) = (Stopped { why, rework }, Some((tip.to_string(), fit)));
        Self::Ended(LandingEnd::Stopped { stopped, files: Vec::new(), tried })
    }

    fn trouble(why: impl ToString) -> Self {
        Self::Ended(LandingEnd::Trouble(showable(&why.to_string())))
    }
}

impl From<GitError> for Round {
    fn from(error: GitError) -> Self {
        Self::trouble(error)
    }
}

impl Lander {
    /// Lands, and writes what came of it.
    pub(super) async fn land(&self, mut next: NextLanding) -> Result<Concluded, StoreError> {
        let ending = match self.case(&next).await? {
            Ok(case) => {
                let mut rounds = 0;
                loop {
                    rounds += 1;
                    let round = match self.round(&mut next, &case).await? {
                        Ok(round) | Err(round) => round,
                    };
                    match round {
                        Round::Ended(ending) => break ending,
                        Round::ClaimLost => return Ok(Concluded::ClaimLost),
                        Round::Again if rounds == ROUNDS_MAX => {
                            let branch = &case.landing.base_branch;
                            break LandingEnd::Trouble(format!("{branch} moved {rounds} times meanwhile"));
                        }
                        Round::Again => {}
                    }
                }
            }
            Err(why) => LandingEnd::Trouble(why),
        };
        door::failpoint("land-ended");
        let id = next.objective_id.clone();
        let concluded = self.substrate.act(&id, move |sql| landing::conclude(sql, &next, &ending)).await?;
        door::failpoint("land-concluded");
        Ok(concluded)
    }

    async fn case(&self, next: &NextLanding) -> Result<Result<Case, String>, StoreError> {
        let id = next.objective_id.clone();
        let found = self.substrate.read(move |sql| {
            let Some(landing) = landing::of(sql, &id)? else { return Ok(None) };
            let land = landing::land_of(sql, &landing)?;
            let decision = match &landing.record_id {
                Some(record_id) => reading::decision_by_id(sql, record_id)?,
                None => None,
            };
            Ok(decision.map(|decision| (landing, land, decision)))
        });
        let Some((landing, land, decision)) = found.await? else {
            return Ok(Err("its record is gone".into()));
        };
        let Some(reviewed) = self.reviewed(&landing).await? else {
            return Ok(Err("its output is gone".into()));
        };
        Ok(self.repository(&landing.repo_ref).map(|repository| Case {
            landing,
            reviewed,
            land,
            decision,
            repository,
        }))
    }

    /// One round. `Err` is an early end, too.
    async fn round(&self, next: &mut NextLanding, case: &Case) -> Result<Result<Round, Round>, StoreError> {
        let (branch, repository) = (case.landing.base_branch.as_str(), &case.repository);
        macro_rules! or_end {
            ($done:expr) => {
                match $done {
                    Ok(value) => value,
                    Err(error) => return Ok(Err(Round::from(error))),
                }
            };
        }
        // An earlier try may have moved the branch and died before it could say so.
        if let (Some(from), Some(to)) = (&case.landing.moved_from, &case.landing.moved_to)
            && or_end!(has(repository, branch, to).await)
        {
            return Ok(Ok(self.finished(case, from, to).await));
        }
        if or_end!(is_symbolic(repository, branch).await) {
            return Ok(Err(Round::stopped(
                format!("{branch} is a symbolic ref: name the branch it stands for"),
                false,
            )));
        }
        let Some(tip) = or_end!(repository.branch(branch).await) else {
            let why = no_branch(&case.landing.repo_ref, branch);
            // On no tip: tried as soon as there is one.
            return Ok(Err(Round::stopped_on("", None, why, false)));
        };
        if let Some(why) = or_end!(rewritten(case, &tip).await) {
            return Ok(Err(Round::stopped_on(&tip, None, why, false)));
        }
        let id = case.landing.work_order_id.as_str();
        let dir = gate_folder(&self.work, id, "land.git", next.held.claim_version);
        let Made { applied, commit } = match make(&dir, repository, &case.landing, &case.reviewed).await {
            Ok(made) => made,
            Err(NotApplied::Unfit(why)) => {
                return Ok(Err(Round::stopped_on(&tip, Some(Fit::Conflicts), why, true)));
            }
            Err(NotApplied::Trouble(why)) => return Ok(Err(Round::trouble(why))),
        };
        let base = case.landing.base_commit.as_str();
        let tree = match or_end!(
            merge(&applied.git(), Candidate { base, commit: &commit, branch, tip: &tip }).await
        ) {
            Merged::Clean(tree) => tree,
            Merged::Contained => return Ok(Ok(Round::Ended(LandingEnd::Contained { tip }))),
            Merged::Conflict { files, why } => {
                let stopped = Stopped { why, rework: true };
                let tried = Some((tip, Some(Fit::Conflicts)));
                return Ok(Ok(Round::Ended(LandingEnd::Stopped { stopped, files, tried })));
            }
        };
        let merged = applied.merged(&tip, &tree);
        let trial = Trial::of_merge(&case.reviewed.snapshot, repository, (&tip, merged.clone()), dir);
        let input = &case.reviewed.gate_input;
        let judged = self.judge.all_gates(input, Some(&trial), next.held.clone()).await?;
        let Some((evidence, held, _)) = judged else { return Ok(Ok(Round::ClaimLost)) };
        next.held = held;
        match verdict(&input.blueprint.gates, &evidence, &input.bundle) {
            Verdict::Pass => {}
            Verdict::Fail(why) => {
                let why = format!("merged with {branch} at {}: {why}", short(&tip));
                return Ok(Ok(Round::stopped_on(&tip, Some(Fit::Merges), why, true)));
            }
            Verdict::Trouble(why) => return Ok(Ok(Round::trouble(why))),
        }
        let to = or_end!(landing_commit(case, &merged, (&tip, &commit)).await);
        let (of, ttl, from, into) = (next.clone(), self.by.ttl, tip.clone(), to.clone());
        let moving =
            self.substrate.act(&next.objective_id, move |sql| landing::moving(sql, &of, ttl, (&from, &into)));
        let Some(held) = moving.await? else { return Ok(Ok(Round::ClaimLost)) };
        next.held = held;
        door::failpoint("land-moving");
        let why = format!("fernery: land {}", case.landing.objective_id);
        let of = Move { branch, from: &tip, to: &to, why: &why };
        or_end!(bring(repository, &merged.git(), of).await);
        door::failpoint("land-brought");
        Ok(Ok(match or_end!(advance(repository, of).await) {
            Moved::Yes => {
                door::failpoint("land-moved");
                self.finished(case, &tip, &to).await
            }
            Moved::Elsewhere(_) => Round::Again,
        }))
    }

    /// The branch has the commit: its working trees follow.
    async fn finished(&self, case: &Case, from: &str, to: &str) -> Round {
        let followed = follow(&case.repository, &case.landing.base_branch, (from, to)).await;
        door::failpoint("land-followed");
        let remarks = match followed {
            Ok(trees) => trees.iter().map(remark).collect(),
            Err(error) => {
                vec![showable(&not_looked_at(&case.landing.base_branch, (from, to), &error.to_string()))]
            }
        };
        Round::Ended(LandingEnd::Landed { from: from.into(), to: to.into(), remarks })
    }
}

fn remark(Followed { path, left_alone }: &Followed) -> String {
    let path = path.display();
    showable(&match left_alone {
        None => format!("working tree {path} has the merged files"),
        Some((why, command)) => {
            format!("working tree {path} is left as it is: {why}. To take the merged files over: {command}")
        }
    })
}

/// Why the branch is no longer what the operator was shown: it may have gone on, but not back.
async fn rewritten(case: &Case, tip: &str) -> Result<Option<String>, GitError> {
    let seen = case.decision.shown["tip"].as_str().unwrap_or_default();
    let git = case.repository.git();
    if seen.is_empty() || seen == tip {
        return Ok(None);
    }
    if case.repository.has_commit(seen).await?
        && git.asks(&["merge-base", "--is-ancestor", seen, tip]).await?
    {
        return Ok(None);
    }
    let branch = &case.landing.base_branch;
    Ok(Some(format!(
        "{branch} was at {} when the merge was asked for, and no longer has that commit",
        short(seen)
    )))
}

/// The commit that the branch shall move to, on top of the tip. Made again from the same record, it is the same commit.
async fn landing_commit(
    case: &Case,
    merged: &AppliedPatch,
    (tip, candidate): (&str, &str),
) -> Result<String, GitError> {
    let (landing, input) = (&case.landing, &case.reviewed.gate_input);
    if case.land.merge == MergeAs::FastForward {
        // A candidate that is one commit on top of the tip is the commit that lands. One that came by rework has the commits of
        // earlier attempts below it.
        let parents = merged.git().line(&["rev-parse", &format!("{candidate}^@")]).await?;
        if parents == tip {
            return Ok(candidate.to_string());
        }
    }
    let (subject, work) = (subject_of(&case.reviewed.snapshot), &input.workorder.workorder);
    let tail = format!(
        "Objective: {}\nWorkorder: {}\nOutput: {}\nRun: {}\nMerge: {}\n",
        work.objective_id,
        work.work_order_id,
        input.bundle.output_id,
        landing.run_id,
        case.decision.record_id
    );
    let author = author_of(&input.bundle);
    let saying = |message| Saying {
        message,
        author: &author,
        authored_at: work.created_at,
        committed_at: case.decision.created_at,
    };
    match case.land.merge {
        MergeAs::FastForward => merged.commit(&saying(&format!("{subject}\n\n{tail}"))).await,
        MergeAs::MergeCommit => {
            let message = format!("Merge {}: {subject}\n\n{tail}", work.objective_id);
            merged.commit_with(&saying(&message), &[candidate]).await
        }
    }
}
