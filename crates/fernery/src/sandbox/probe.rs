//! What this machine can hold a program to, found out by real runs of each tier in a cell of its own.

use super::{Cell, Tier, refusal};
use crate::worker::program;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// A tier that takes longer to start a program that does nothing does not work.
const TRIAL_WITHIN: Duration = Duration::from_secs(20);
/// The tiers that contain, the stronger one first.
const CONTAINING: [Tier; 2] = [Tier::Bubblewrap, Tier::Landlock];

/// What this machine can hold a program to.
#[derive(Clone, Debug)]
pub struct Probe {
    found: Vec<(Tier, Result<(), Obstacle>)>,
}

/// Why a tier does not work here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What was seen.
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
        let (bubblewrap, landlock) =
            tokio::join!(attempt(own, Tier::Bubblewrap), attempt(own, Tier::Landlock));
        Self::found(bubblewrap, landlock)
    }

    /// Where this was found out of each.
    pub(crate) fn found(bubblewrap: Result<(), Obstacle>, landlock: Result<(), Obstacle>) -> Self {
        Self { found: vec![(Tier::Bubblewrap, bubblewrap), (Tier::Landlock, landlock)] }
    }

    /// What came of trying a tier.
    pub fn of(&self, tier: Tier) -> Result<(), Obstacle> {
        self.found.iter().find(|(tried, _)| *tried == tier).map_or(Ok(()), |(_, found)| found.clone())
    }

    /// The strongest tier that works here.
    pub fn best(&self) -> Option<Tier> {
        CONTAINING.into_iter().find(|tier| self.of(*tier).is_ok())
    }

    /// The tier to run a program in: the one that is wanted or, where none is named, the best one here. Never none at all,
    /// unless that was said. `Err`: why not, and what to do about it.
    pub fn choose(&self, wanted: Option<Tier>) -> Result<Tier, String> {
        let told = |tier: Tier| {
            let Obstacle { why, remedy } = self.of(tier).err()?;
            Some(format!("{tier} does not work here: {why} ({remedy})"))
        };
        match wanted {
            Some(tier) => told(tier).map_or(Ok(tier), Err),
            None => self.best().ok_or_else(|| {
                let all: Vec<String> = CONTAINING.into_iter().filter_map(told).collect();
                format!("nothing here contains a program: {}", all.join("; "))
            }),
        }
    }
}

/// A probe that is made once, when it is first asked for: most servers start no program.
#[derive(Clone, Debug, Default)]
pub struct Probing(Arc<OnceCell<Probe>>);

impl Probing {
    /// What was found.
    pub async fn probe(&self) -> &Probe {
        self.0.get_or_init(Probe::look).await
    }

    /// As [`Probe::choose`]; what need not be contained needs no probe.
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
    let output = output.await.map_err(|_| "it did not come to an end".to_string())?.map_err(text)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refusal(output.status.code(), &said).unwrap_or_else(|| format!("{} {}", output.status, said.trim())))
}

/// What keeps a machine from containing, as far as it says so itself.
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

    fn obstacle(&self, tier: Tier, why: String) -> Obstacle {
        let told = |why: &str, remedy: &str| Obstacle { why: why.into(), remedy: remedy.into() };
        match tier {
            Tier::Landlock => Obstacle {
                why,
                remedy: "it takes Linux 6.12 or later with Landlock among the security modules in force: boot with \
                         lsm=landlock,… before those in /sys/kernel/security/lsm"
                    .into(),
            },
            _ if !self.has_bubblewrap => told("bwrap is not installed", "apt install bubblewrap"),
            _ if self.namespaces_max == Some(0) => {
                told("user namespaces are switched off", "sysctl -w user.max_user_namespaces=15000")
            }
            _ if self.users_may_not => told(
                "only root may make user namespaces",
                "sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            _ if self.apparmor_restricts => Obstacle {
                why: format!("AppArmor keeps bwrap from making user namespaces: {why}"),
                remedy: "apt install apparmor-profiles and ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict \
                         /etc/apparmor.d/ and systemctl reload apparmor; or, for all programs, sysctl -w \
                         kernel.apparmor_restrict_unprivileged_userns=0"
                    .into(),
            },
            _ => Obstacle {
                why,
                remedy: "in a container, let it make namespaces and mounts (Docker: --security-opt seccomp=unconfined \
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
            "nothing here contains a program: bubblewrap does not work here: x (mend x); landlock does not work here: y \
             (mend y)"
        );
        assert_eq!(nothing.choose(Some(Tier::Unconfined)), Ok(Tier::Unconfined));
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
    }
}
