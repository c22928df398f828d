//! A machine: a Debian that is booted by systemd-nspawn from an [`Image`], which it does not change. It has systemd, a
//! loopback interface and nothing else of the network.
//!
//! Its changes lie in memory, under mounts that nobody else sees. All its processes are in one namespace of processes,
//! whose first one dies with this program: so nothing outlives a run, however that ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::image::Image;
use super::limited::{self, Running, Said};

/// How long a command in a machine may take, if nothing else is said.
const COMMAND_TIME: Duration = Duration::from_secs(60);
const BOOT_TIME: Duration = Duration::from_secs(60);
/// What a command's own limit in the machine is given to take effect.
const GRACE: Duration = Duration::from_secs(10);

/// How the names of a machine's folder and of its control groups begin; the latter end with the number of this process.
const FOLDER: &str = "machine-";
const GROUPS: &str = "authentick-booted-";

/// Where control groups are: of version 2 alone; of version 1, the two in which systemd keeps its units.
const HIERARCHIES: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"];

/// Mounts, and boots. Arguments: the image, an empty folder, a name for the control groups, the longest life in
/// seconds. Systemd-nspawn is the image's, with the libraries that it was built for.
const BOOT: &str = r#"
image=$1 folder=$2 name=$3 seconds=$4
mount -t tmpfs -o mode=755,size=50% machine "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
if ! mount -t overlay -o "lowerdir=$image,upperdir=$folder/upper,workdir=$folder/work" machine "$folder/root"; then
    cp -a "$image/." "$folder/root"
fi
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    if [ -w "$hierarchy/cgroup.procs" ]; then
        mkdir -p "$hierarchy/$name"
        # 0 is who writes it.
        echo 0 > "$hierarchy/$name/cgroup.procs"
    fi
done
libraries=$(echo "$image"/usr/lib/*-linux-gnu)
exec timeout --kill-after=5 "$seconds" "$(echo "$image"/usr/lib*/ld-linux-*.so.*)" \
    --library-path "$libraries/systemd:$libraries" "$image/usr/bin/systemd-nspawn" --quiet --boot \
    --directory "$folder/root" --register=no --keep-unit --private-network --console=pipe --machine=machine
"#;

/// A machine that runs. It is shut down when it is dropped.
#[derive(Debug)]
pub(crate) struct Machine {
    /// `unshare`, which ends with the machine and the machine with it.
    child: Child,
    /// Its systemd, as this system numbers it.
    init: u32,
    /// The name of its control groups.
    name: String,
    /// Where its mounts are, for its own processes; empty for others.
    _folder: tempfile::TempDir,
    console: PathBuf,
}

impl Machine {
    /// Boots a machine, which lives so long at most.
    pub(crate) fn boot(image: &Image, life: Duration) -> Result<Self, String> {
        let parent = image.folder.parent().unwrap_or(&image.folder);
        let io = |error| format!("{}: {error}", parent.display());
        remove_leftovers(parent);
        let folder = tempfile::Builder::new().prefix(FOLDER).tempdir_in(parent).map_err(io)?;
        let console = parent.join("console.txt");
        let log = fs::File::create(&console).map_err(io)?;
        let name = format!("{GROUPS}{}", std::process::id());
        let mut command = limited::caged(BOOT);
        command.arg(&image.folder).arg(folder.path());
        command.args([&name, &life.as_secs().to_string()]);
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(io)?).stderr(log);
        let child = command.spawn().map_err(|error| format!("setpriv did not start: {error}"))?;
        let mut machine = Machine { child, init: 0, name, _folder: folder, console };
        machine.init = limited::until("the machine's systemd", BOOT_TIME, || machine.find_init())
            .map_err(|problem| machine.with_console(&problem))?;
        limited::until("the machine is running", BOOT_TIME, || machine.is_up())
            .map_err(|problem| machine.with_console(&problem))?;
        Ok(machine)
    }

    /// The process that is the first one of a namespace in the namespace of our own child.
    fn find_init(&mut self) -> Result<u32, String> {
        if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("it has ended: {status}"));
        }
        let processes = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?.flatten();
        let found = processes.filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            (depth_if_first(&status)? == 2 && self.is_ours(number)).then_some(number)
        });
        found.max().ok_or_else(|| "there is none".to_owned())
    }

    fn is_ours(&self, mut process: u32) -> bool {
        // As deep as processes are nested in a machine that boots.
        for _ in 0..16 {
            let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return false };
            match field(&status, "PPid").and_then(|parent| parent.parse().ok()) {
                Some(parent) if parent == self.child.id() => return true,
                Some(parent) => process = parent,
                None => return false,
            }
        }
        false
    }

    fn is_up(&self) -> Result<(), String> {
        let said = self.run("systemctl is-system-running")?;
        match said.text().trim() {
            "running" => Ok(()),
            state => {
                Err(format!("systemd says `{state}`{}", self.run("systemctl --failed --no-legend")?.text()))
            }
        }
    }

    fn with_console(&self, problem: &str) -> String {
        let said = fs::read_to_string(&self.console).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(5).collect();
        format!("{problem}; on the console: {}", last.into_iter().rev().collect::<Vec<_>>().join("; "))
    }

    /// `sh -c SCRIPT` in the machine, which ends it after so many seconds.
    fn command(&self, script: &str, limit: Duration) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.init.to_string()]);
        command.args([
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--cgroup",
            "--root",
            "--wdns=/root",
            "--",
        ]);
        command.args([
            "/usr/bin/env",
            "-i",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ]);
        command.args(["HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "timeout"]);
        command.args(["--kill-after=2", &limit.as_secs().to_string(), "/bin/sh", "-c", script]);
        command
    }

    /// Runs a script, whatever it ends with.
    pub(crate) fn run(&self, script: &str) -> Result<Said, String> {
        self.begin(script, COMMAND_TIME)?.finish()
    }

    /// Starts a script that may take so long.
    pub(crate) fn begin(&self, script: &str, limit: Duration) -> Result<Running, String> {
        Running::start(&mut self.command(script, limit), Stdio::null(), limit + GRACE)
    }

    /// Runs a script that has to succeed, and returns what it printed.
    pub(crate) fn succeed(&self, script: &str) -> Result<String, String> {
        let said = self.run(script)?;
        limited::succeeded(script.trim(), &said)?;
        Ok(said.text())
    }

    /// Copies a file into the machine.
    pub(crate) fn put(&self, file: &Path, to: &str) -> Result<(), String> {
        let input = fs::File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut command = self.command(&format!("cat > {to}"), COMMAND_TIME);
        let said = Running::start(&mut command, input.into(), COMMAND_TIME + GRACE)?.finish()?;
        limited::succeeded(&format!("cat > {to}"), &said)
    }

    /// Writes a file in the machine.
    pub(crate) fn write(&self, to: &str, text: &str) -> Result<(), String> {
        let io = |error: std::io::Error| format!("{to}: {error}");
        let file = tempfile::NamedTempFile::new().map_err(io)?;
        fs::write(file.path(), text).map_err(io)?;
        self.put(file.path(), to)
    }

    /// What a file in the machine holds.
    pub(crate) fn read(&self, path: &str) -> Result<String, String> {
        self.succeed(&format!("cat {path}"))
    }

    /// What a unit has logged since the machine has booted.
    pub(crate) fn journal(&self, unit: &str) -> Result<String, String> {
        self.succeed(&format!(
            "journalctl --sync; journalctl --unit {unit} --no-pager --output short-monotonic"
        ))
    }

    /// `systemctl show` of one property.
    pub(crate) fn show(&self, unit: &str, property: &str) -> Result<String, String> {
        Ok(self.succeed(&format!("systemctl show --property {property} --value {unit}"))?.trim().to_owned())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The kernel takes a moment to be done with the processes; until then their groups are in use.
        let end = Instant::now() + Duration::from_secs(5);
        for hierarchy in HIERARCHIES {
            let groups = Path::new(hierarchy).join(&self.name);
            while groups.is_dir() && !remove_groups(&groups) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Removes what runs have left that were killed themselves: empty folders, and control groups without a process. Who
/// boots a machine here has the image for itself, so all other folders are of the dead.
fn remove_leftovers(parent: &Path) {
    let entries =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let after = |path: &Path, start: &str| Some(path.file_name()?.to_str()?.strip_prefix(start)?.to_owned());
    for folder in entries(parent).filter(|path| after(path, FOLDER).is_some()) {
        let _ = fs::remove_dir(folder);
    }
    for group in HIERARCHIES.iter().flat_map(|hierarchy| entries(Path::new(hierarchy))) {
        let is_dead = after(&group, GROUPS).is_some_and(|process| !Path::new("/proc").join(process).exists());
        if is_dead {
            remove_groups(&group);
        }
    }
}

/// Removes control groups, the innermost first; whether they are gone.
fn remove_groups(group: &Path) -> bool {
    let inner = fs::read_dir(group).into_iter().flatten().flatten();
    inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).for_each(|entry| {
        remove_groups(&entry.path());
    });
    fs::remove_dir(group).is_ok()
}

/// Of a process that is number 1 of its namespace: how many namespaces it is below the one of this `/proc`.
fn depth_if_first(status: &str) -> Option<usize> {
    let numbers: Vec<&str> = field(status, "NSpid")?.split_whitespace().collect();
    (numbers.last() == Some(&"1")).then(|| numbers.len() - 1)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_process_of_a_machine_is_told_by_its_numbers() {
        let status = |numbers: &str| format!("Name:\tsystemd\nPid:\t7\nPPid:\t6\nNSpid:\t{numbers}\n");
        assert_eq!(depth_if_first(&status("7\t3\t1")), Some(2));
        assert_eq!(depth_if_first(&status("7\t1")), Some(1));
        assert_eq!(depth_if_first(&status("7\t3\t2")), None);
        assert_eq!(depth_if_first("Name:\told\n"), None);
        assert_eq!(field(&status("7"), "PPid"), Some("6"));
    }

    #[test]
    fn leftovers_of_killed_runs_are_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["machine-a", "machine-b/root", "debian"] {
            fs::create_dir_all(parent.path().join(name)).unwrap();
        }
        remove_leftovers(parent.path());
        let is_there = |name: &str| parent.path().join(name).exists();
        assert!(!is_there("machine-a") && is_there("machine-b/root") && is_there("debian"));
    }

    #[test]
    fn groups_are_removed_from_the_inside() {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().join("a");
        fs::create_dir_all(outer.join("b/c")).unwrap();
        fs::create_dir_all(outer.join("d")).unwrap();
        assert!(remove_groups(&outer));
        assert!(!outer.exists() && !remove_groups(&outer));
    }
}
