//! What a hostile program may try. A script that ends with 0 has got through.

use rustix::process::geteuid;

/// One thing to try.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    /// It has got through once something outside has changed.
    pub(crate) changes: bool,
    /// It is tried with a network.
    pub(crate) network: bool,
    /// It gets through where Landlock's rules stand alone: the guide says so.
    pub(crate) known_in_partial: bool,
    pub(crate) control: Control,
}

/// Where it can be shown that the script would get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Always,
    /// Where the kernel lets a process look into others of its user.
    WithoutYama,
    /// Where a program could be prepared that makes root of whoever runs it, and where the program is a user of its own.
    AsRoot,
    /// Where the kernel was built with it.
    WhereBuilt(&'static str),
}

impl Control {
    /// Why it cannot be shown on this machine; `None`: it can.
    pub(crate) fn impossible_for(self) -> Option<String> {
        let number =
            |file: &str| std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
        let (possible, why) = match self {
            Self::Always => (true, String::new()),
            Self::WithoutYama => {
                let scope: i64 = number("/proc/sys/kernel/yama/ptrace_scope").unwrap_or(0);
                (scope == 0, format!("kernel.yama.ptrace_scope is {scope}, not 0"))
            }
            Self::AsRoot => (geteuid().is_root(), "the tests do not run as root".to_string()),
            Self::WhereBuilt("io_uring") => {
                let possible = number("/proc/sys/kernel/io_uring_disabled") == Some(0);
                (possible, "kernel.io_uring_disabled is not 0".to_string())
            }
            Self::WhereBuilt(file) => (std::path::Path::new(file).exists(), format!("there is no {file}")),
        };
        (!possible).then_some(why)
    }
}

const fn attempt(name: &'static str, script: &'static str) -> Attempt {
    Attempt {
        name,
        script,
        changes: false,
        network: false,
        known_in_partial: false,
        control: Control::Always,
    }
}

const fn where_possible(control: Control, name: &'static str, script: &'static str) -> Attempt {
    Attempt { control, ..attempt(name, script) }
}

/// It changes something outside.
const fn change(name: &'static str, script: &'static str) -> Attempt {
    Attempt { changes: true, ..attempt(name, script) }
}

/// It changes what no rule of Landlock covers.
const fn uncovered(name: &'static str, script: &'static str) -> Attempt {
    Attempt { known_in_partial: true, ..change(name, script) }
}

const YAMA: Control = Control::WithoutYama;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    // Files.
    attempt("a file outside is read", "cat $WORLD/secret"),
    attempt("a folder outside is listed", "ls $WORLD/open"),
    change("a file outside is made", "echo x > $WORLD/open/made"),
    change("a file outside is changed", "echo x >> $WORLD/open/file"),
    change("a file outside is removed", "rm $WORLD/open/file"),
    attempt("a program outside is run", "$WORLD/open/tool"),
    attempt("what else the system has", "ls /var/lib/dpkg"),
    attempt("operator.token by its path", "cat $WORLD/data/operator.token"),
    attempt("operator.token by the way up", "cat ../../../operator.token"),
    attempt("the folder of another run", "cat $WORLD/data/work/other/content"),
    change("the next run's configuration", "echo x >> $WORLD/data/fernery.toml"),
    change("the operator's shell is given a line", "echo x >> $WORLD/home/.profile"),
    attempt("an ssh key", "cat $WORLD/home/.ssh/id_ed25519"),
    change("a hook in the operator's repository", "echo x > $WORLD/repo/.git/hooks/pre-commit"),
    change("the configuration of the operator's repository", "echo x >> $WORLD/repo/.git/config"),
    attempt("a link out, read", "ln -s $WORLD/secret out && cat out"),
    change("a link out, written", "ln -s $WORLD/open/file out && echo x > out"),
    attempt("a link out that was there before", "cat $WORLD/tools/link"),
    change("a hard link in", "ln $WORLD/open/file in && cat in"),
    change("a rename in", "mv $WORLD/open/file in"),
    change("a rename out", "echo x > mine && mv mine $WORLD/open/theirs"),
    change("what may only be read is written", "echo x >> $WORLD/tools/notes"),
    attempt("shared memory of others", "cat /dev/shm/$NAME"),
    attempt("a file that was left open", "cat <&9"),
    // Modes, owners, times and attributes.
    uncovered("the mode of a file outside", "chmod 600 $WORLD/home/.ssh/id_ed25519"),
    uncovered("operator.token is opened to everybody", "chmod 604 $WORLD/data/operator.token"),
    uncovered(
        "operator.token is opened by a newer call",
        "exec perl -e 'exit(syscall($ENV{NR_fchmodat2},-100,\"$ENV{WORLD}/data/operator.token\",0604,0)!=0)'",
    ),
    uncovered("a folder outside is opened to everybody", "chmod 705 $WORLD/open"),
    uncovered("the owner of a file outside", "chown $(id -u) $WORLD/open/file"),
    uncovered("the times of a file outside", "touch -c -d @1000 $WORLD/open/file"),
    change(
        "an attribute of a file outside",
        "exec perl -e '($n,$v)=(\"user.x\",\"1\"); exit(syscall($ENV{NR_setxattr},\"$ENV{WORLD}/open/file\",$n,$v,1,0)!=0)'",
    ),
    // Programs that make their owner of whoever runs them, left behind in the program's own folder.
    attempt("setuid by chmod", "cp /usr/bin/id own && chmod 4755 own; test -u own"),
    attempt("setgid by chmod", "cp /usr/bin/id own && chmod 2755 own; test -g own"),
    attempt(
        "setuid by an open file",
        "exec perl -e 'open(F,\">\",\"own\"); chmod(04755,*F); exit(!-u \"own\")'",
    ),
    attempt(
        "setuid by a newer call",
        "echo > own; exec perl -e '$f=\"own\"; syscall($ENV{NR_fchmodat2},-100,$f,04755,0); exit(!-u \"own\")'",
    ),
    attempt(
        "setuid from the start",
        "exec perl -MFcntl -e 'sysopen(F,\"own\",O_WRONLY|O_CREAT,04755); exit(!-u \"own\")'",
    ),
    attempt(
        "setgid from the start",
        "exec perl -MFcntl -e 'sysopen(F,\"own\",O_WRONLY|O_CREAT,02755); exit(!-g \"own\")'",
    ),
    attempt(
        "setuid before it has a name",
        "exec perl -MFcntl -e 'sysopen(F,\".\",O_RDWR|020200000,04755); exit(!-u F)'",
    ),
    attempt(
        "setuid by a call whose mode lies in memory",
        "exec perl -e '$how=pack(\"QQQ\",0101,04755,0); $f=\"own\"; syscall($ENV{NR_openat2},-100,$f,$how,24); exit(!-u \"own\")'",
    ),
    attempt(
        "setuid by mknod",
        "exec perl -e '$f=\"own\"; syscall($ENV{NR_mknodat},-100,$f,0104755,0); exit(!-u \"own\")'",
    ),
    // Processes.
    attempt("a signal to another process", "kill -TERM $VICTIM"),
    attempt("a signal to another group", "kill -TERM -$VICTIM"),
    attempt("limits of another process", "prlimit --pid $VICTIM --cpu=1:1"),
    attempt("the command line of another process", "cat /proc/$VICTIM/cmdline"),
    attempt("the environment of another process", "grep -q hunter2 /proc/$VICTIM/environ"),
    attempt("the open files of another process", "ls /proc/$VICTIM/fd"),
    attempt("the root of another process", "cat /proc/$VICTIM/root$WORLD/secret"),
    where_possible(
        YAMA,
        "the memory of another process",
        "exec perl -e 'open(M,\"<\",\"/proc/$ENV{VICTIM}/mem\") or exit 1'",
    ),
    where_possible(
        YAMA,
        "another process is traced",
        "exec perl -e 'exit(syscall($ENV{NR_ptrace},16,$ENV{VICTIM}+0,0,0)!=0)'",
    ),
    attempt("tracing at all", "exec perl -e 'exit(syscall($ENV{NR_ptrace},0,0,0,0)!=0)'"),
    attempt(
        "memory across processes",
        "exec perl -e 'exit(syscall($ENV{NR_process_vm_readv},$ENV{VICTIM}+0,0,0,0,0,0)!=0)'",
    ),
    // The network.
    attempt(
        "TCP to this machine",
        "exec perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) && connect(S,pack_sockaddr_in($ENV{TCP},inet_aton(\"127.0.0.1\"))) or exit 1'",
    ),
    attempt(
        "UDP to this machine",
        "exec perl -MSocket -e 'alarm 5; socket(S,PF_INET,SOCK_DGRAM,0) && connect(S,pack_sockaddr_in($ENV{UDP},inet_aton(\"127.0.0.1\"))) && send(S,\"hi\",0) && defined(recv(S,$b,9,0)) && $b eq \"hi\" or exit 1'",
    ),
    attempt(
        "a socket with an abstract name",
        "exec perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack(\"Sa*\",AF_UNIX,\"\\0$ENV{NAME}\")) or exit 1'",
    ),
    Attempt {
        network: true,
        ..attempt(
            "a socket with an abstract name, with a network",
            "exec perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack(\"Sa*\",AF_UNIX,\"\\0$ENV{NAME}\")) or exit 1'",
        )
    },
    attempt(
        "a socket with a path",
        "exec perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack_sockaddr_un(\"$ENV{WORLD}/open/socket\")) or exit 1'",
    ),
    attempt("what the kernel tells of devices", "exec perl -e 'socket(S,16,3,15) or exit 1'"),
    // The kernel.
    attempt("a user namespace", "unshare -U true"),
    attempt("a mount", "unshare -Urm mount -t tmpfs none /usr"),
    attempt("a bind mount", "unshare -Urm mount --bind $WORLD/data ."),
    attempt("another root", "unshare -Ur chroot / true"),
    attempt(
        "a user namespace by clone",
        "exec perl -e '$p=syscall($ENV{NR_clone},0x10000011,0,0,0,0); exit($p==-1)'",
    ),
    attempt(
        "a copy of a mount",
        "unshare -Urm perl -e '$r=\"/\"; exit(syscall($ENV{NR_open_tree},-100,$r,0x8001)<0)'",
    ),
    where_possible(
        Control::AsRoot,
        "a program that makes root of its user",
        "test \"$($WORLD/tools/id -u)\" = 0",
    ),
    where_possible(
        Control::WhereBuilt("/proc/keys"),
        "keys of the user",
        "exec perl -e 'exit(syscall($ENV{NR_keyctl},0,-4,1)<0)'",
    ),
    where_possible(
        Control::WhereBuilt("io_uring"),
        "io_uring",
        "exec perl -e '$b=\"\\0\"x120; exit(syscall($ENV{NR_io_uring_setup},1,$b)<0)'",
    ),
    where_possible(
        Control::WhereBuilt("/proc/sys/vm/unprivileged_userfaultfd"),
        "userfaultfd",
        "exec perl -e 'exit(syscall($ENV{NR_userfaultfd},1)<0)'",
    ),
    // Errors that say that the kernel would at least have looked at the question.
    attempt("typing into a terminal", "exec perl -e '$c=\"x\"; ioctl(STDIN,0x5412,$c); exit($!{EPERM}?1:0)'"),
    // Limits.
    where_possible(
        Control::AsRoot,
        "too many processes",
        "exec perl -e 'for(1..100){$p=fork; defined $p or kill(9,@p),exit 1; if(!$p){close STDOUT;close STDERR;sleep 9;exit} push @p,$p} kill 9,@p'",
    ),
    attempt("too large a file", "head -c 3000000 /dev/zero > large"),
    attempt("too much memory", "exec perl -e '$x=\"a\"x(200<<20); exit(length($x)==0)'"),
    attempt("too many open files", "exec perl -e 'for(1..100){open($f[$_],\"<\",\"/dev/null\") or exit 1}'"),
    attempt(
        "too long on a processor",
        "exec perl -e 'for(;;){$x++ for 1..1000000; my($u,$s)=times; last if $u+$s>2.2}'",
    ),
    attempt("a core file", "ulimit -c unlimited"),
];
