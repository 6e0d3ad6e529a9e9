//! What there is to steal and to break around a cell: an operator's files, a server's data, other processes and sockets. All of
//! it is open to the program's own user, so that nothing but the sandbox can stop it.

use fernery_exec::guard::ATTEMPT_VARIABLE;
use fernery_exec::sandbox::{Cell, Tier};
use nix::libc;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The program.
pub(crate) fn fernery() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_fernery"))
}

/// The program, where every user can start it: whoever cloned below `/root` has it where nobody else gets to.
fn for_everybody() -> (PathBuf, Option<TempDir>) {
    let others_enter = |path: &Path| path.metadata().is_ok_and(|meta| meta.mode() & 0o001 != 0);
    if fernery().ancestors().all(others_enter) {
        return (fernery(), None);
    }
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("fernery");
    fs::copy(fernery(), &copy).unwrap();
    for path in [place.path(), copy.as_path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    (copy, Some(place))
}

pub(crate) struct World {
    dir: TempDir,
    program: PathBuf,
    _copy: Option<TempDir>,
    pub(crate) mark: String,
    uid: Option<u32>,
    /// The user that starts every program, if the tests are root and their server is to be an ordinary user.
    ordinary: Option<u32>,
    /// A process of the same user.
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    _by_name: UnixListener,
    _by_path: UnixListener,
    shared: PathBuf,
}

/// What a script came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// It was run at all: what never began was not stopped.
    pub(crate) fn began(&self) -> bool {
        self.stdout.starts_with("began\n")
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }
}

impl World {
    /// Of a server that runs as the tests do: as root, each of its programs is a user of its own.
    pub(crate) fn new() -> Self {
        Self::of(false)
    }

    /// Of a server that is an ordinary user, as whom its programs run: all of this world is theirs.
    pub(crate) fn ordinary() -> Self {
        Self::of(true)
    }

    fn of(is_ordinary: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let mark = root.file_name().unwrap().to_string_lossy().into_owned();
        let uid = Cell::spare_uid(&mark);
        for (file, text) in [
            ("secret", "hunter2\n"),
            ("open/file", "precious\n"),
            ("open/tool", "#!/bin/sh\ntrue\n"),
            ("repo/.git/config", "[core]\n"),
            ("repo/.git/hooks/README", "hooks\n"),
            ("data/operator.token", "token\n"),
            ("data/fernery.toml", "# next run\n"),
            ("data/work/other/content", "other\n"),
            ("home/.ssh/id_ed25519", "key\n"),
            ("home/.agent/login", "my login\n"),
            ("tools/notes", "notes\n"),
        ] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
        }
        fs::create_dir_all(root.join("data/work/run/work")).unwrap();
        fs::copy("/usr/bin/id", root.join("tools/id")).unwrap();
        symlink(root.join("secret"), root.join("tools/link")).unwrap();
        open_up(root);
        // The program's own, to do with as it likes.
        let own = Cell { uid, ..Cell::new("/", "/") };
        let parts = ["data/work/run", "data/operator.token", "open", "home/.ssh"];
        own.hand_over(parts.map(|part| root.join(part))).unwrap();
        if is_ordinary {
            own.hand_over([root]).unwrap();
        } else if uid.is_some() {
            fs::set_permissions(root.join("tools/id"), Permissions::from_mode(0o4755)).unwrap();
        }
        let mut victim = Command::new("sleep");
        victim.arg("1000").env("SECRET", "hunter2").process_group(0).stdout(Stdio::null());
        become_user(&mut victim, uid);
        let name = SocketAddr::from_abstract_name(mark.as_bytes()).unwrap();
        let by_path = UnixListener::bind(root.join("open/socket")).unwrap();
        fs::set_permissions(root.join("open/socket"), Permissions::from_mode(0o777)).unwrap();
        let shared = Path::new("/dev/shm").join(&mark);
        fs::write(&shared, "shared\n").unwrap();
        own.hand_over([&shared]).unwrap();
        let (program, copy) = if is_ordinary && uid.is_some() { for_everybody() } else { (fernery(), None) };
        Self {
            program,
            _copy: copy,
            mark,
            uid: uid.filter(|_| !is_ordinary),
            ordinary: uid.filter(|_| is_ordinary),
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _by_name: UnixListener::bind_addr(&name).unwrap(),
            _by_path: by_path,
            shared,
            dir,
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn cell(&self) -> Cell {
        let place = self.path("data/work/run");
        Cell { uid: self.uid, ..Cell::new(place.join("work"), place.join("home")) }
    }

    /// The command line that runs this in a cell, by the program under test.
    pub(crate) fn wrapped(&self, cell: &Cell, tier: Tier, argv: &[OsString]) -> Vec<OsString> {
        // These tests may be root, which contains nothing as itself.
        let uid = cell.uid.or(self.ordinary);
        let mut wrapped = Cell { uid, ..cell.clone() }.wrap(tier, argv).unwrap();
        if tier != Tier::Unconfined {
            wrapped[0] = self.program.clone().into();
            let mut order: serde_json::Value = serde_json::from_str(wrapped[2].to_str().unwrap()).unwrap();
            order["cell"]["uid"] = serde_json::to_value(cell.uid).unwrap();
            wrapped[2] = order.to_string().into();
        }
        wrapped
    }

    /// Runs a script, which says first that it has begun.
    pub(crate) fn run(&self, cell: &Cell, tier: Tier, script: &str) -> Ran {
        let script = format!("echo began\n{script}");
        self.run_argv(cell, tier, &["/bin/sh".into(), "-c".into(), script.into()])
    }

    pub(crate) fn run_argv(&self, cell: &Cell, tier: Tier, argv: &[OsString]) -> Ran {
        self.start(cell, tier, self.wrapped(cell, tier, argv))
    }

    /// As [`Self::run`], by an operator whose home is the one of this world: the tester's own is left alone.
    pub(crate) fn run_at_home(&self, cell: &Cell, tier: Tier, script: &str) -> Ran {
        let home = self.path("home");
        let place = |login: &PathBuf| cell.home.join(login.strip_prefix(&home).unwrap());
        let logins: Vec<(&PathBuf, PathBuf)> = cell.login.iter().map(|login| (login, place(login))).collect();
        let homeless = Cell { login: Vec::new(), ..cell.clone() };
        let mut wrapped = self.wrapped(&homeless, tier, &["/bin/sh".into(), "-c".into(), script.into()]);
        let mut order: serde_json::Value = serde_json::from_str(wrapped[2].to_str().unwrap()).unwrap();
        order["logins"] = serde_json::to_value(logins).unwrap();
        wrapped[2] = order.to_string().into();
        self.start(cell, tier, wrapped)
    }

    fn start(&self, cell: &Cell, tier: Tier, wrapped: Vec<OsString>) -> Ran {
        let mut command = Command::new("/bin/sh");
        // Whoever started this program may have left files open.
        command.args(["-c", "exec 9<\"$WORLD/secret\"; exec \"$@\"", "sh"]).args(wrapped);
        command.env_clear().envs(cell.environment()).envs(self.told(cell));
        command.current_dir(&cell.folder).stdin(Stdio::null());
        become_user(&mut command, self.ordinary.or(self.uid.filter(|_| tier == Tier::Unconfined)));
        let output = std::thread::scope(|threads| {
            threads.spawn(|| self.echo());
            let output = command.output().unwrap();
            // The echo ends with a word from here, if it has had none.
            UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"end", self.udp.local_addr().unwrap()).unwrap();
            output
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    fn echo(&self) {
        let mut word = [0; 16];
        while let Ok((n, from)) = self.udp.recv_from(&mut word) {
            if &word[..n] == b"end" {
                return;
            }
            let _ = self.udp.send_to(&word[..n], from);
        }
    }

    /// What the scripts know of this world.
    fn told(&self, cell: &Cell) -> Vec<(String, String)> {
        let mut told: Vec<(String, String)> = [
            (ATTEMPT_VARIABLE, self.mark.clone()),
            ("WORLD", self.dir.path().display().to_string()),
            ("FOLDER", cell.folder.display().to_string()),
            ("VICTIM", self.victim.id().to_string()),
            ("NAME", self.mark.clone()),
            // Nobody else has this one: it is made of a process id.
            ("KEY", (0x4600_0000 + self.victim.id()).to_string()),
            ("TCP", self.tcp.local_addr().unwrap().port().to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into();
        for (name, number) in [
            ("ptrace", libc::SYS_ptrace),
            ("process_vm_readv", libc::SYS_process_vm_readv),
            ("keyctl", libc::SYS_keyctl),
            ("clone", libc::SYS_clone),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("userfaultfd", libc::SYS_userfaultfd),
            ("open_tree", libc::SYS_open_tree),
            ("setxattr", libc::SYS_setxattr),
            ("fchmodat2", 452),
            ("openat2", libc::SYS_openat2),
            ("mknodat", libc::SYS_mknodat),
            ("mq_open", libc::SYS_mq_open),
            ("mq_unlink", libc::SYS_mq_unlink),
        ] {
            told.push((format!("NR_{name}"), number.to_string()));
        }
        told
    }

    /// All that there is outside of the cell, as it is now.
    pub(crate) fn outside(&self) -> Vec<String> {
        let mut found = Vec::new();
        list(self.dir.path(), &self.path("data/work/run"), &mut found);
        found
    }

    /// Processes that bear this world's mark.
    pub(crate) fn marked(&self) -> Vec<i32> {
        let wanted = format!("{ATTEMPT_VARIABLE}={}", self.mark);
        let bears = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(bears).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = fs::remove_file(&self.shared);
    }
}

fn become_user(command: &mut Command, uid: Option<u32>) {
    if let Some(uid) = uid {
        command.uid(uid).gid(uid);
    }
}

fn list(path: &Path, but: &Path, found: &mut Vec<String>) {
    let meta = path.symlink_metadata().unwrap();
    // When it was last changed, be it only its mode, owner, times or attributes.
    let changed_at = (path != but).then(|| (meta.ctime(), meta.ctime_nsec()));
    found.push(format!("{} {:o} {} {changed_at:?}", path.display(), meta.mode(), meta.len()));
    if meta.is_dir() && path != but {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.sort();
        entries.iter().for_each(|entry| list(entry, but, found));
    }
}

/// Lets everybody read and write everything below.
fn open_up(path: &Path) {
    if path.symlink_metadata().unwrap().is_symlink() {
        return;
    }
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| open_up(&entry.unwrap().path()));
    }
}
