//! Whether an agent can be used here: its program, its version, and something to log in with.

use super::version::{VERSION_WITHIN, printed};
use crate::program;
use fernery_core::profile::Profile;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The parts of this machine that are checked.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where programs are looked for.
    pub path: Option<OsString>,
    /// The operator's home.
    pub home: Option<PathBuf>,
    pub fernery: PathBuf,
    /// How long a program may take to print its version.
    pub patience: Duration,
}

impl Machine {
    /// The machine that this runs on, as the operator sees it.
    pub fn here() -> std::io::Result<Self> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let (path, fernery) = (std::env::var_os("PATH"), std::env::current_exe()?);
        Ok(Self { path, home, fernery, patience: VERSION_WITHIN })
    }
}

/// Something that an agent lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    pub missing: String,
    /// What to do about it.
    pub remedy: String,
}

/// The findings about an agent on this machine.
#[derive(Clone, Debug, Default)]
pub struct Usable {
    /// Its program; `None` if it is missing or the blueprint names one.
    pub program: Option<PathBuf>,
    /// What it says of its version.
    pub version: Option<String>,
    /// The login files that exist, and the environment variables with keys that are set.
    pub credentials: Vec<String>,
    /// It is installed, and only a login is missing.
    pub logged_out: bool,
    /// What it lacks; if empty, it can be used.
    pub lacks: Vec<Lack>,
}

/// Looks for all that a profile needs.
pub async fn judged(profile: &Profile, machine: &Machine) -> Usable {
    let mut usable = looked_at(profile, machine);
    let version = profile.version_command(&machine.fernery.to_string_lossy());
    if let Some(program) = usable.program.clone().filter(|_| !version.is_empty()) {
        let asked = match program::find(version[0].as_ref(), machine.path.as_deref()) {
            Ok(asked) => printed(&asked, &version[1..], machine.patience).await,
            Err(why) => Err(why),
        };
        match asked {
            Ok(version) => usable.version = Some(version),
            Err(why) => {
                usable.logged_out = false;
                let missing = format!("`{}` does not tell its version: {why}", version.join(" "));
                let remedy = format!("run it by hand; it is {}", program.display());
                usable.lacks.insert(0, Lack { missing, remedy });
            }
        }
    }
    usable
}

/// Looks for a profile's program and login, and starts nothing: fast enough to be asked again and again.
pub fn looked_at(profile: &Profile, machine: &Machine) -> Usable {
    let mut usable = Usable::default();
    let install = || match profile.install.as_str() {
        "" => "install it, or change the profile".to_string(),
        install => install.to_string(),
    };
    match profile.argv.first().map(String::as_str) {
        // The blueprint gives the whole command.
        None | Some("{args}") => {}
        Some("{fernery}") => usable.program = Some(machine.fernery.clone()),
        Some(name) => match program::find(name.as_ref(), machine.path.as_deref()) {
            Ok(found) => usable.program = Some(found),
            Err(missing) => usable.lacks.push(Lack { missing, remedy: install() }),
        },
    }
    let home = machine.home.iter();
    let files = home.flat_map(|home| profile.login.iter().filter(|file| home.join(file).exists()));
    let files = files.map(|file| format!("~/{file}"));
    let is_set = |name: &&String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    usable.credentials = files.chain(profile.secrets.iter().filter(is_set).cloned()).collect();
    if usable.credentials.is_empty() && !(profile.login.is_empty() && profile.secrets.is_empty()) {
        let files = profile.login.iter().map(|file| format!("~/{file}"));
        let any: Vec<String> = profile.secrets.iter().cloned().chain(files).collect();
        usable.logged_out = usable.program.is_some() && usable.lacks.is_empty();
        let missing = format!("nothing to log in with: none of {}", any.join(", "));
        usable.lacks.push(Lack { missing, remedy: install() });
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn profile(lines: &str) -> Profile {
        let text = format!(
            "name = \"x\"\ninstall = \"get it\"\nargv = [\"tool\"]\nversion = [\"tool\", \"-V\"]\ndialect = \"text\"\n{lines}"
        );
        Profile::parse(&text).unwrap()
    }

    #[tokio::test]
    async fn what_is_missing_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine {
            path: Some(folder.path().into()),
            home: Some(folder.path().into()),
            fernery: "/nowhere/fernery".into(),
            patience: VERSION_WITHIN,
        };
        let with_login = profile("login = [\".tool/auth\"]\nsecrets = [\"NOBODY_SETS_THIS_KEY\"]\n");
        let found = judged(&with_login, &machine).await;
        assert_eq!((found.program, found.version), (None, None));
        let lacks: Vec<_> = found.lacks.iter().map(|lack| lack.missing.as_str()).collect();
        assert!(lacks[0].contains("not found in PATH"), "{lacks:?}");
        assert_eq!(lacks[1], "nothing to log in with: none of NOBODY_SETS_THIS_KEY, ~/.tool/auth");
        assert!(found.lacks.iter().all(|lack| lack.remedy == "get it") && !found.logged_out);

        let tool = folder.path().join("tool");
        std::fs::write(&tool, "#!/bin/sh\necho; echo \"tool 1.2 $1\"; echo more\n").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o700)).unwrap();
        let found = judged(&with_login, &machine).await;
        assert!(found.logged_out && found.lacks.len() == 1, "{found:?}");
        std::fs::create_dir(folder.path().join(".tool")).unwrap();
        std::fs::write(folder.path().join(".tool/auth"), "").unwrap();
        let found = judged(&with_login, &machine).await;
        assert_eq!(found.lacks, []);
        assert_eq!((found.program, found.version.as_deref()), (Some(tool.clone()), Some("tool 1.2 -V")));
        assert_eq!(found.credentials, ["~/.tool/auth"]);

        for (script, why) in [("exit 3", "exit status: 3"), (":", "it printed nothing")] {
            std::fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
            let found = judged(&profile(""), &machine).await;
            assert!(found.lacks[0].missing.contains(why), "{found:?}");
        }
    }

    #[tokio::test]
    async fn a_program_that_never_answers_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("tool");
        std::fs::write(&tool, "#!/bin/sh\nexec /usr/bin/tail -f /dev/null\n").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o700)).unwrap();
        let machine = Machine {
            path: Some(folder.path().into()),
            home: None,
            fernery: "/nowhere/fernery".into(),
            patience: Duration::from_millis(100),
        };
        let found = judged(&profile(""), &machine).await;
        assert!(found.lacks[0].missing.contains("longer than 100ms"), "{found:?}");
    }
}
