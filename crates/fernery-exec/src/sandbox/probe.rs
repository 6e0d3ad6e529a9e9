//! Finds the sandbox tiers that work on this machine, by real runs in a cell.

use super::{Cell, Tier, refusal};
use crate::program;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// A tier that takes longer to start an empty program counts as not working.
const TRIAL_WITHIN: Duration = Duration::from_secs(20);
/// The tiers that contain, the stronger one first.
const CONTAINING: [Tier; 2] = [Tier::Bubblewrap, Tier::Landlock];

/// The sandbox tiers of this machine.
#[derive(Clone, Debug)]
pub struct Probe {
    found: Vec<(Tier, Result<(), Obstacle>)>,
}

/// Why a tier does not work here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub why: String,
    /// What an operator can do.
    pub remedy: String,
}

impl Probe {
    /// Tries each tier once.
    pub async fn look() -> Self {
        match std::env::current_exe() {
            Ok(own) => Self::look_with(&own).await,
            Err(error) => {
                let why = format!("this program does not find itself: {error}");
                let obstacle = Obstacle { why, remedy: "start it by its path".into() };
                Self::found(Err(obstacle.clone()), Err(obstacle))
            }
        }
    }

    /// As [`Self::look`], where `own` is this program.
    pub async fn look_with(own: &Path) -> Self {
        let (bubblewrap, mut landlock) =
            tokio::join!(attempt(own, Tier::Bubblewrap), attempt(own, Tier::Landlock));
        let Err(obstacle) = &mut landlock else { return Self::found(bubblewrap, landlock) };
        // The weaker tier tells what exactly is missing.
        let partial = attempt(own, Tier::LandlockPartial).await;
        if partial.is_ok() {
            *obstacle = Machine::look().no_namespace(&obstacle.why);
        }
        let mut probe = Self::found(bubblewrap, landlock);
        probe.found.push((Tier::LandlockPartial, partial));
        probe
    }

    /// From known results.
    pub fn found(bubblewrap: Result<(), Obstacle>, landlock: Result<(), Obstacle>) -> Self {
        Self { found: vec![(Tier::Bubblewrap, bubblewrap), (Tier::Landlock, landlock)] }
    }

    /// The result of trying a tier. A weaker tier than one that works is not tried.
    pub fn of(&self, tier: Tier) -> Result<(), Obstacle> {
        self.found.iter().find(|(tried, _)| *tried == tier).map_or(Ok(()), |(_, found)| found.clone())
    }

    /// The strongest tier that works here.
    pub fn best(&self) -> Option<Tier> {
        CONTAINING.into_iter().find(|tier| self.of(*tier).is_ok())
    }

    /// The tier for a program: the wanted one or, if none is named, the best here. Never `none` unless it was named.
    /// `Err`: why not, and what to do about it.
    pub fn choose(&self, wanted: Option<Tier>) -> Result<Tier, String> {
        let told = |tier: Tier| {
            let Obstacle { why, remedy } = self.of(tier).err()?;
            Some(format!("{tier} does not work here: {why} ({remedy})"))
        };
        match wanted {
            Some(tier) => told(tier).map_or(Ok(tier), Err),
            None => self.best().ok_or_else(|| {
                let all: Vec<String> = CONTAINING.into_iter().filter_map(told).collect();
                format!("no sandbox works here: {}", all.join("; "))
            }),
        }
    }
}

/// A probe that runs once, when it is first needed: most servers start no program.
#[derive(Clone, Debug, Default)]
pub struct Probing(Arc<OnceCell<Probe>>);

impl Probing {
    pub async fn probe(&self) -> &Probe {
        self.0.get_or_init(Probe::look).await
    }

    /// Like [`Probe::choose`]; probes only if a sandbox is needed.
    pub async fn choose(&self, wanted: Option<Tier>) -> Result<Tier, String> {
        match wanted {
            Some(Tier::Unconfined) => Ok(Tier::Unconfined),
            _ => self.probe().await.choose(wanted),
        }
    }
}

/// Runs a program that does nothing.
async fn attempt(own: &Path, tier: Tier) -> Result<(), Obstacle> {
    let failed = |why: String| Machine::look().obstacle(tier, why);
    let tried = async {
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        trial(own, place.path(), tier).await
    };
    tried.await.map_err(failed)
}

async fn trial(own: &Path, place: &Path, tier: Tier) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let (folder, home) = (place.join("work"), place.join("home"));
    std::fs::create_dir(&folder).map_err(text)?;
    let cell = Cell { uid: Cell::spare_uid(&place.to_string_lossy()), ..Cell::new(folder, home) };
    cell.hand_over([&cell.folder]).map_err(text)?;
    let mut argv: Vec<OsString> = cell.wrap(tier, &["/bin/true".into()]).map_err(text)?;
    argv[0] = own.into();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env_clear().envs(cell.environment()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(TRIAL_WITHIN, command.output());
    let output = output.await.map_err(|_| "it did not end".to_string())?.map_err(text)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refusal(output.status.code(), &said).unwrap_or_else(|| format!("{} {}", output.status, said.trim())))
}

/// Lets every program make user namespaces under AppArmor.
const APPARMOR_ALLOWS: &str = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";

/// What keeps this machine from containing programs, as far as it tells.
#[derive(Debug, Default)]
struct Machine {
    has_bubblewrap: bool,
    apparmor_restricts: bool,
    users_may_not: bool,
    namespaces_max: Option<u64>,
}

impl Machine {
    fn look() -> Self {
        let number = |name: &str| -> Option<u64> {
            std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
        };
        Self {
            has_bubblewrap: program::find("bwrap".as_ref(), Some(super::PATH.as_ref())).is_ok(),
            apparmor_restricts: number("kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            users_may_not: number("kernel/unprivileged_userns_clone") == Some(0),
            namespaces_max: number("user/max_user_namespaces"),
        }
    }

    /// By one setting for all programs.
    fn switched_off(&self) -> Option<Obstacle> {
        let told = |why: &str, remedy: &str| Some(Obstacle { why: why.into(), remedy: remedy.into() });
        if self.namespaces_max == Some(0) {
            told("user namespaces are switched off", "sysctl -w user.max_user_namespaces=15000")
        } else if self.users_may_not {
            told("only root may create user namespaces", "sysctl -w kernel.unprivileged_userns_clone=1")
        } else {
            None
        }
    }

    /// Landlock's rules work here, and nothing holds what they do not cover.
    fn no_namespace(&self, said: &str) -> Obstacle {
        let (why, remedy) = match self.switched_off() {
            Some(Obstacle { why, remedy }) => (why, remedy),
            None if self.apparmor_restricts => {
                (format!("AppArmor denies them to this program: {said}"), APPARMOR_ALLOWS.to_string())
            }
            None => {
                let remedy = "allow this service or container to create user and mount namespaces and to \
                    mount (systemd: \
                              RestrictNamespaces=no, SystemCallFilter=@mount), or start it as root";
                (said.to_string(), remedy.to_string())
            }
        };
        Obstacle {
            why: format!(
                "without user namespaces a program could change modes, owners and times of every file of this user, \
                 operator.token among them; {why}"
            ),
            remedy: format!(
                "{remedy}; or accept that and set sandbox = \"{}\", which does not contain",
                Tier::LandlockPartial
            ),
        }
    }

    fn obstacle(&self, tier: Tier, why: String) -> Obstacle {
        let told = |why: &str, remedy: &str| Obstacle { why: why.into(), remedy: remedy.into() };
        if tier == Tier::Bubblewrap
            && self.has_bubblewrap
            && let Some(switched_off) = self.switched_off()
        {
            return switched_off;
        }
        match tier {
            Tier::Landlock | Tier::LandlockPartial => Obstacle {
                why,
                remedy: "it takes Linux 6.12 or later with Landlock among the security modules in force: boot with \
                         lsm=landlock,… before those in /sys/kernel/security/lsm"
                    .into(),
            },
            _ if !self.has_bubblewrap => told("bwrap is not installed", "apt install bubblewrap"),
            _ if self.apparmor_restricts => Obstacle {
                why: format!("AppArmor does not allow bwrap to create user namespaces: {why}"),
                remedy: format!(
                    "apt install apparmor-profiles and ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict \
                     /etc/apparmor.d/ and systemctl reload apparmor; or, for all programs, {APPARMOR_ALLOWS}"
                ),
            },
            _ => Obstacle {
                why,
                remedy: "in a container, allow namespaces and mounts (Docker: --security-opt seccomp=unconfined \
                         --security-opt apparmor=unconfined --security-opt systempaths=unconfined), as a service too \
                         (systemd: RestrictNamespaces=no, SystemCallFilter=@mount); or use landlock"
                    .into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(why: &str) -> Result<(), Obstacle> {
        Err(Obstacle { why: why.into(), remedy: format!("mend {why}") })
    }

    #[test]
    fn the_best_tier_is_taken_and_none_only_where_it_is_said() {
        assert_eq!(Probe::found(Ok(()), Ok(())).choose(None), Ok(Tier::Bubblewrap));
        assert_eq!(Probe::found(obstacle("x"), Ok(())).choose(None), Ok(Tier::Landlock));
        let nothing = Probe::found(obstacle("x"), obstacle("y"));
        let why = nothing.choose(None).unwrap_err();
        assert_eq!(
            why,
            "no sandbox works here: bubblewrap does not work here: x (mend x); landlock does not work here: y \
             (mend y)"
        );
        assert_eq!(nothing.choose(Some(Tier::Unconfined)), Ok(Tier::Unconfined));
    }

    #[test]
    fn what_does_not_contain_is_taken_only_where_it_is_named() {
        let mut probe = Probe::found(obstacle("x"), obstacle("y"));
        probe.found.push((Tier::LandlockPartial, Ok(())));
        assert!(probe.choose(None).is_err() && probe.choose(Some(Tier::Landlock)).is_err());
        assert_eq!(probe.choose(Some(Tier::LandlockPartial)), Ok(Tier::LandlockPartial));
        assert!(CONTAINING.iter().all(|tier| tier.contains()) && !Tier::LandlockPartial.contains());
    }

    #[test]
    fn a_tier_that_is_named_is_never_replaced() {
        let why = Probe::found(obstacle("x"), Ok(())).choose(Some(Tier::Bubblewrap)).unwrap_err();
        assert_eq!(why, "bubblewrap does not work here: x (mend x)");
        assert_eq!(Probe::found(Ok(()), Ok(())).choose(Some(Tier::Landlock)), Ok(Tier::Landlock));
    }

    #[test]
    fn each_obstacle_has_its_remedy() {
        let machine = Machine { has_bubblewrap: true, ..Machine::default() };
        let remedy = |machine: &Machine| machine.obstacle(Tier::Bubblewrap, "said".into()).remedy;
        assert_eq!(remedy(&Machine::default()), "apt install bubblewrap");
        assert!(remedy(&Machine { users_may_not: true, ..machine }).contains("unprivileged_userns_clone=1"));
        let machine = Machine { has_bubblewrap: true, namespaces_max: Some(0), ..Machine::default() };
        assert!(remedy(&machine).contains("max_user_namespaces"));
        let machine = Machine { has_bubblewrap: true, apparmor_restricts: true, ..Machine::default() };
        assert!(remedy(&machine).contains("bwrap-userns-restrict"));
        let machine = Machine { has_bubblewrap: true, ..Machine::default() };
        assert!(remedy(&machine).contains("container"));
        let no_namespace = machine.no_namespace("EPERM");
        assert!(no_namespace.why.contains("operator.token") && no_namespace.why.ends_with("EPERM"));
        let off = Machine { users_may_not: true, ..machine }.no_namespace("EPERM");
        for words in ["unprivileged_userns_clone=1", "sandbox = \"landlock-partial\""] {
            assert!(off.remedy.contains(words), "{off:?}");
        }
    }
}
