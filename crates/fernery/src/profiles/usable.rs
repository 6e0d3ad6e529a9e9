//! Whether an agent can be used here: its program, its version, and something to log in with.

use super::version::{VERSION_WITHIN, printed};
use crate::worker::program;
use fernery_core::profile::Profile;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What is looked at of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Where programs are looked for.
    pub(crate) path: Option<OsString>,
    /// The operator's home.
    pub(crate) home: Option<PathBuf>,
    /// This program.
    pub(crate) fernery: PathBuf,
    /// How long a program may take to print its version.
    pub(crate) patience: Duration,
}

impl Machine {
    /// The one that this runs on, as the operator sees it.
    pub(crate) fn here() -> std::io::Result<Self> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let (path, fernery) = (std::env::var_os("PATH"), std::env::current_exe()?);
        Ok(Self { path, home, fernery, patience: VERSION_WITHIN })
    }
}

/// Something that an agent lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    /// What is missing.
    pub(crate) missing: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

/// What was found of an agent on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usable {
    /// Its program; `None` if it is not there, or the blueprint names one.
    pub(crate) program: Option<PathBuf>,
    /// What it says of its version.
    pub(crate) version: Option<String>,
    /// The files of its login that are there, and names of the environment that hold keys.
    pub(crate) credentials: Vec<String>,
    /// It is installed, and lacks nothing but a login.
    pub(crate) logged_out: bool,
    /// What it lacks; it can be used if that is nothing.
    pub(crate) lacks: Vec<Lack>,
}

/// Looks for all that a profile needs.
pub(crate) async fn judged(profile: &Profile, machine: &Machine) -> Usable {
    let mut usable = Usable::default();
    let fernery = machine.fernery.to_string_lossy();
    let install = || match profile.install.as_str() {
        "" => "install it, or change the profile".to_string(),
        install => install.to_string(),
    };
    match profile.argv.first().map(String::as_str) {
        // The blueprint's arguments are all of it.
        None | Some("{args}") => {}
        Some("{fernery}") => usable.program = Some(machine.fernery.clone()),
        Some(name) => match program::find(name.as_ref(), machine.path.as_deref()) {
            Ok(found) => usable.program = Some(found),
            Err(missing) => usable.lacks.push(Lack { missing, remedy: install() }),
        },
    }
    let version = profile.version_command(&fernery);
    if let Some(program) = usable.program.as_ref().filter(|_| !version.is_empty()) {
        let asked = match program::find(version[0].as_ref(), machine.path.as_deref()) {
            Ok(asked) => printed(&asked, &version[1..], machine.patience).await,
            Err(why) => Err(why),
        };
        match asked {
            Ok(version) => usable.version = Some(version),
            Err(why) => usable.lacks.push(Lack {
                missing: format!("`{}` does not tell its version: {why}", version.join(" ")),
                remedy: format!("run it by hand; it is {}", program.display()),
            }),
        }
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
