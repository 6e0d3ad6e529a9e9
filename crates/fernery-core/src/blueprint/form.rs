//! The format of the file, table by table, with the rules in and between tables.

use super::patches::{BRANCH_PREFIX_DEFAULT, judged_as_patches, makes_patches};
use super::{
    BUILTIN, Blueprint, Category, Envelope, ExecutorKind, Flaw, Gate, GateRetry, Limits, MANIFEST_BUILDER,
    Neighbours, ReadableArtifact, Reads, TRIAGE, Worker, WorkerKind,
};
use crate::artifact::{AzollaId, DiazotrophType, ObjectiveType};
use crate::limits;
use crate::toml_file::{Fields, Found, Place, Reader, tree};
use std::collections::BTreeMap;
use std::time::Duration;

const BUDGET_DEFAULT: Duration = Duration::from_secs(30 * 60);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The workers that tickets, triage and manifests need.
const TICKET_WORKERS: &[WorkerKind] =
    &[WorkerKind::Readiness, WorkerKind::Scheduler, WorkerKind::Runner, WorkerKind::Gate];
/// The same for tickets that people carry out: there is nothing to run.
const PERSON_WORKERS: &[WorkerKind] = &[WorkerKind::Readiness, WorkerKind::Scheduler, WorkerKind::Gate];
const TRIAGE_WORKERS: &[WorkerKind] =
    &[WorkerKind::CaptureReadiness, WorkerKind::Scheduler, WorkerKind::Runner, WorkerKind::Gate];
const MANIFEST_WORKERS: &[WorkerKind] =
    &[WorkerKind::ManifestScheduler, WorkerKind::Runner, WorkerKind::Gate];

const KIND: tree::Kind = tree::Kind { what: "blueprint", builtin: BUILTIN, own: "azolla_id" };

pub(super) fn read(text: &str, beside: &Neighbours<'_>) -> Result<Blueprint, Vec<Flaw>> {
    let (table, sources) = tree::read(&KIND, text, beside.blueprint)?;
    let mut reader = Reader::new(sources);
    let mut file = reader.file(table);
    let blueprint = reader.blueprint(&mut file, beside);
    reader.end(file);
    match (reader.flaws(), blueprint) {
        (flaws, Some(blueprint)) if flaws.is_empty() => Ok(blueprint),
        (flaws, _) => Err(flaws),
    }
}

impl Reader {
    /// `None` only where a flaw was noted.
    fn blueprint(&mut self, file: &mut Fields, beside: &Neighbours<'_>) -> Option<Blueprint> {
        let azolla_id = self.required(file, "azolla_id", "the name of the azolla");
        let azolla_id = azolla_id.and_then(|found| self.parsed::<AzollaId>(found));
        let description = self.text(file, "description").map_or_else(String::new, |found| found.value);
        let category = self.line(file, "category", 64);
        let objective_type = self.text(file, "objective_type");
        let objective_type =
            objective_type.and_then(|f| self.word(f, ObjectiveType::ALL, ObjectiveType::as_str));
        let objective_type = objective_type.map_or(ObjectiveType::Ticket, |found| found.value);
        let is_standing = objective_type == ObjectiveType::Standing;
        let category = self.category(category, is_standing);
        let zone = self.zone(file);
        let standing =
            self.standing(file, is_standing, azolla_id.as_ref().map(|found| &found.value), &description);
        let (triage_at, manifest_at) = (file.place("triage"), file.place("manifest"));
        let triage = self.triage(file, is_standing);
        let manifest = self.manifest(file, is_standing, &zone);
        let of_track = |track: &str, at: Option<Place>, of: &str| {
            let value = DiazotrophType::stored(of);
            Found { value, at: at.unwrap_or_default(), path: track.to_string() }
        };
        let mut made_for = Vec::new();
        made_for.extend(triage.as_ref().map(|_| of_track("triage", triage_at, TRIAGE)));
        made_for.extend(manifest.as_ref().map(|_| of_track("manifest", manifest_at, MANIFEST_BUILDER)));
        if !is_standing {
            let of = self.required(file, "diazotroph_type", "which kind of executor its workorders are for");
            made_for.extend(of.and_then(|found| self.parsed::<DiazotrophType>(found)));
        } else if let Some((at, path)) = file.drop("diazotroph_type") {
            self.flaw(
                at,
                &path,
                "is only for an azolla of tickets; [triage] and [manifest] have types of their own",
            );
        }
        let patches = makes_patches(made_for.first().map(|found| &found.value));
        let branch_prefix = self.branch_prefix(file, patches);
        let executors = self.executors(file, &made_for, beside);
        let kind = made_for.first().and_then(|of| executors.get(&of.value)).map(|executor| executor.kind);
        let for_people = !is_standing && kind == Some(ExecutorKind::Person);
        let tickets = (!is_standing).then_some(if for_people { PERSON_WORKERS } else { TICKET_WORKERS });
        let workers = self.workers(file, (tickets, triage.is_some(), manifest.is_some()));
        let prompts = self.prompts(file, &executors, is_standing);
        let diazotroph_type = match made_for.into_iter().next() {
            Some(found) => Some(found.value),
            None => is_standing.then(|| DiazotrophType::stored(TRIAGE)),
        };
        let (budget, budget_at) = self.budget(file);
        if let Some(at) = file.place("envelope").filter(|_| is_standing) {
            self.flaw(at, "envelope", "is only for tickets: a standing objective is never done");
        }
        let envelope = self.envelope(file, budget, budget_at);
        let gates_at = file.place("gates").unwrap_or_default();
        let mut gates = self.gates(file, patches);
        if for_people {
            self.check_person(gates_at, patches, &gates);
        }
        if patches && !gates.is_empty() {
            judged_as_patches(&mut gates, branch_prefix.as_deref());
        }
        let retry = self.retry(file);
        let land = self.land(file, is_standing);
        let limits = self.limits(file);
        let urgency = self.urgency(file);
        let reads = self.reads(file);
        let notices = self.notices(file);
        Some(Blueprint {
            azolla_id: azolla_id?.value,
            description,
            category,
            objective_type,
            diazotroph_type: diazotroph_type?,
            branch_prefix,
            workers,
            executors,
            prompts,
            budget,
            envelope,
            gates,
            retry,
            land,
            limits,
            urgency,
            reads,
            zone,
            standing,
            triage,
            manifest,
            notices,
        })
    }

    /// What a person has done is judged with the act itself, in one transaction: by the gates that run no program.
    fn check_person(&mut self, at: Place, patches: bool, gates: &[Gate]) {
        if patches {
            let why = "a person's work is no patch: give the azolla another diazotroph_type";
            self.flaw(at, "diazotroph_type", why);
        }
        let plain = |gate: &&Gate| matches!(gate, Gate::Schema | Gate::Outcome | Gate::Size { .. });
        for gate in gates.iter().filter(|gate| !plain(gate)) {
            let why =
                format!("gate `{}` is not for a person's work: schema, outcome and size are", gate.name());
            self.flaw(at, "gates", why);
        }
    }

    /// The category; the words of earlier versions are mapped to the current ones.
    fn category(&mut self, found: Option<Found<String>>, is_standing: bool) -> String {
        let category = match found {
            None if is_standing => Some(Category::MemorySupport),
            None => Some(Category::Execution),
            Some(found) => Category::of_earlier_file(&found.value)
                .or_else(|| self.word(found, Category::ALL, Category::as_str).map(|found| found.value)),
        };
        category.map_or_else(String::new, |category| category.as_str().to_string())
    }

    fn branch_prefix(&mut self, file: &mut Fields, patches: bool) -> Option<String> {
        if patches && !file.has("branch_prefix") {
            return Some(BRANCH_PREFIX_DEFAULT.to_string());
        }
        let found = self.line(file, "branch_prefix", 100)?;
        if patches && found.value.is_empty() {
            self.flaw(
                found.at,
                &found.path,
                "must not be empty: the work of a PATCH_DIAZOTROPH goes to a branch",
            );
        }
        // With any id appended, this is a valid branch name: without dots there is no `..` and no `.lock`.
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
        let starts = found.value.is_empty() || found.value.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts || !found.value.chars().all(allowed) || found.value.contains("//") {
            self.flaw(
                found.at,
                &found.path,
                "must consist of letters, digits and _ - / and start with a letter or digit",
            );
        }
        (!found.value.is_empty()).then_some(found.value)
    }

    fn workers(
        &mut self,
        file: &mut Fields,
        (tickets, triage, manifest): (Option<&[WorkerKind]>, bool, bool),
    ) -> BTreeMap<WorkerKind, Worker> {
        let mut workers = BTreeMap::new();
        let (mut named, mut flawed) = (Vec::new(), false);
        if let Some(mut table) = self.table(file, "workers") {
            for (name, entry) in table.entries() {
                let path = table.path(&name);
                let Some(kind) = WorkerKind::ALL.iter().find(|kind| kind.as_str() == name) else {
                    self.unknown(
                        entry.key_at,
                        &path,
                        "worker",
                        &name,
                        WorkerKind::ALL.iter().map(|k| k.as_str()),
                    );
                    flawed = true;
                    continue;
                };
                named.push(*kind);
                let Some(mut fields) = self.fields(&path, entry.node) else { continue };
                let bounds = limits::WORKER_INTERVAL_MIN..=limits::WORKER_INTERVAL_MAX;
                let interval = self.duration(&mut fields, "interval", bounds);
                let interval = interval.map_or(Duration::from_secs(2), |found| found.value);
                workers.insert(*kind, Worker { interval });
                self.end(fields);
            }
        }
        // A misspelled name is one mistake, not two.
        let needed = [
            (tickets.is_some(), "an azolla of tickets", tickets.unwrap_or_default()),
            (triage, "[triage]", TRIAGE_WORKERS),
            (manifest, "[manifest]", MANIFEST_WORKERS),
        ];
        for (_, what, kinds) in needed.iter().filter(|(wanted, ..)| *wanted && !flawed) {
            for kind in kinds.iter().filter(|kind| !named.contains(kind)) {
                let why = format!("{what} needs this worker; add [workers.{kind}]");
                self.missing(file, &format!("workers.{kind}"), &why);
            }
        }
        workers
    }

    fn budget(&mut self, file: &mut Fields) -> (Duration, Option<(Place, String)>) {
        let Some(mut table) = self.table(file, "budget") else { return (BUDGET_DEFAULT, None) };
        let found = self.duration(&mut table, "workorder", limits::BUDGET_MIN..=limits::TIMEOUT_MAX);
        self.end(table);
        found.map_or((BUDGET_DEFAULT, None), |found| (found.value, Some((found.at, found.path))))
    }

    fn envelope(
        &mut self,
        file: &mut Fields,
        budget: Duration,
        budget_at: Option<(Place, String)>,
    ) -> Envelope {
        let Some(mut table) = self.table(file, "envelope") else { return Envelope::default() };
        let attempts = self.small(&mut table, "attempts", 1..=limits::MAX_ATTEMPTS_MAX);
        let wall_time =
            self.duration(&mut table, "wall_time", limits::BUDGET_MIN..=limits::ENVELOPE_TIME_MAX);
        if let Some(wall_time) = wall_time.as_ref().filter(|found| found.value < budget) {
            let (at, path) = budget_at.unwrap_or((wall_time.at, wall_time.path.clone()));
            self.flaw(
                at,
                &path,
                "one workorder may take longer than envelope.wall_time allows for all of them",
            );
        }
        let tokens =
            self.number(&mut table, "tokens", 1..=limits::ENVELOPE_TOKENS_MAX).map(|found| found.value);
        let cost_usd_micros = self.dollars(&mut table, "cost_usd");
        self.end(table);
        Envelope { attempts, wall_time: wall_time.map(|found| found.value), tokens, cost_usd_micros }
    }

    fn retry(&mut self, file: &mut Fields) -> GateRetry {
        let mut retry = GateRetry { gate_failures: 2, infrastructure: 3 };
        if let Some(mut table) = self.table(file, "retry") {
            let gate_failures = self.small(&mut table, "gate_failures", 0..=limits::MAX_ATTEMPTS_MAX);
            let infrastructure = self.small(&mut table, "infrastructure", 1..=limits::MAX_ATTEMPTS_MAX);
            retry.gate_failures = gate_failures.unwrap_or(retry.gate_failures);
            retry.infrastructure = infrastructure.unwrap_or(retry.infrastructure);
            self.end(table);
        }
        retry
    }

    fn limits(&mut self, file: &mut Fields) -> Limits {
        let mut limits = Limits { concurrency: 3, review_limit: 10 };
        if let Some(mut table) = self.table(file, "limits") {
            let concurrency = self.small(&mut table, "concurrency", 0..=limits::AZOLLA_LIMIT_MAX);
            let review_limit = self.small(&mut table, "review_limit", 0..=limits::AZOLLA_LIMIT_MAX);
            limits.concurrency = concurrency.unwrap_or(limits.concurrency);
            limits.review_limit = review_limit.unwrap_or(limits.review_limit);
            self.end(table);
        }
        limits
    }

    fn urgency(&mut self, file: &mut Fields) -> [Option<Duration>; 5] {
        let mut urgency = [Some(Duration::ZERO), Some(DAY), Some(7 * DAY), Some(30 * DAY), None];
        if let Some(mut table) = self.table(file, "urgency") {
            for (key, slot) in ["0", "1", "2", "3", "4"].into_iter().zip(&mut urgency) {
                match table.word(key) {
                    Some("now") => *slot = Some(Duration::ZERO),
                    Some("none") => *slot = None,
                    _ => {
                        let found =
                            self.duration(&mut table, key, Duration::from_millis(1)..=limits::DELAY_MAX);
                        *slot = found.map(|found| found.value).or(*slot);
                        continue;
                    }
                }
                table.drop(key);
            }
            self.end(table);
        }
        urgency
    }

    fn reads(&mut self, file: &mut Fields) -> Reads {
        let mut reads = Reads::default();
        let Some(mut table) = self.table(file, "reads") else { return reads };
        if let Some(list) = self.list(&mut table, "azollas") {
            if list.value.len() > limits::READS_MAX {
                self.flaw(list.at, &list.path, format!("may have at most {} names", limits::READS_MAX));
            }
            for (at, path, value) in self.texts(list) {
                if value == "*" {
                    reads.every_azolla = true;
                } else if let Some(found) = self.parsed(Found { value, at, path }) {
                    reads.azollas.push(found.value);
                }
            }
        }
        if let Some(list) = self.list(&mut table, "artifact_types") {
            for (at, path, value) in self.texts(list) {
                let found = Found { value, at, path };
                let found = self.word(found, ReadableArtifact::ALL, ReadableArtifact::as_str);
                reads.artifact_types.extend(found.map(|found| found.value));
            }
        }
        self.end(table);
        reads
    }
}
