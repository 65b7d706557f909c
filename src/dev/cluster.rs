//! A PostgreSQL cluster of our own, in a folder, from the installed binaries, as an unprivileged user when we are root.

use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How much a cluster may forget when the machine dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: settings as they come.
    Durable,
    /// Everything: for tests, which make their data anew.
    Fast,
}

/// Why there is no cluster. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// PostgreSQL is not installed.
    #[error(
        "PostgreSQL is not installed: install it (Debian, Ubuntu: apt-get install postgresql), or set DATABASE_URL to a running one"
    )]
    NotInstalled,
    /// A program of PostgreSQL failed.
    #[error("{program} failed: {message}")]
    Failed {
        /// Which one.
        program: String,
        /// What it said.
        message: String,
    },
    /// A file can't be read or written.
    #[error("the private PostgreSQL's folder can't be used: {0}")]
    Io(#[from] io::Error),
}

/// A private cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    data: PathBuf,
    socket: PathBuf,
    binaries: PathBuf,
    user: Option<&'static str>,
}

impl Cluster {
    /// The cluster of a folder, running or not.
    pub fn of(folder: &Path) -> Result<Self, ClusterError> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let digest = hex::encode(Sha256::digest(folder.to_string_lossy().as_bytes()));
        let short: String = digest.chars().take(12).collect();
        // A socket's path has at most 107 bytes, so it can't be in a deep folder.
        let socket = PathBuf::from(format!("/tmp/parterre-{short}"));
        let user = if is_root()? { Some(unprivileged_user()?) } else { None };
        let cluster = Self { data: folder.join("data"), socket, binaries: binaries()?, user };
        cluster.where_its_user_can(&folder)
    }

    /// Starts the cluster of a folder, made first if it is not there.
    pub fn start(folder: &Path, durability: Durability) -> Result<Self, ClusterError> {
        let cluster = Self::of(folder)?;
        std::fs::create_dir_all(&cluster.socket)?;
        cluster.own(&cluster.socket.clone())?;
        if !cluster.data.join("PG_VERSION").exists() {
            let data = cluster.data.to_string_lossy().into_owned();
            cluster.run("initdb", &["-D", &data, "-U", "parterre", "-A", "trust", "-E", "UTF8", "--no-locale"])?;
        }
        if cluster.is_running() {
            return Ok(cluster);
        }
        let data = cluster.data.to_string_lossy().into_owned();
        let log = cluster.data.with_extension("log").to_string_lossy().into_owned();
        let speed = match durability {
            Durability::Durable => "",
            Durability::Fast => " -c fsync=off -c synchronous_commit=off -c full_page_writes=off",
        };
        let options = format!(
            "-k {} -c listen_addresses= -c max_connections=400 -c shared_buffers=256MB -c wal_level=replica{speed}",
            cluster.socket.display()
        );
        cluster.run("pg_ctl", &["-D", &data, "-l", &log, "-w", "-t", "60", "-o", &options, "start"])?;
        Ok(cluster)
    }

    /// Stops it, if it runs.
    pub fn stop(&self) -> Result<(), ClusterError> {
        if self.is_running() {
            let data = self.data.to_string_lossy().into_owned();
            self.run("pg_ctl", &["-D", &data, "-m", "fast", "-w", "stop"])?;
        }
        // It has nothing in it now, and is made at each start.
        std::fs::remove_dir(&self.socket).ok();
        Ok(())
    }

    /// The address of one of its databases.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let socket = self.socket.to_string_lossy().replace('/', "%2F");
        format!("postgres://parterre@{socket}/{database}")
    }

    /// Removes it with all its data.
    pub fn remove(&self) -> Result<(), ClusterError> {
        self.stop()?;
        match std::fs::remove_dir_all(&self.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Creates a database, if it is not there.
    pub fn create_database(&self, name: &str) -> Result<(), ClusterError> {
        let socket = self.socket.to_string_lossy().into_owned();
        let made = self.run("createdb", &["-h", &socket, "-U", "parterre", name]);
        match made {
            Err(ClusterError::Failed { message, .. }) if message.contains("already exists") => Ok(()),
            result => result.map(drop),
        }
    }

    /// Runs pgbench against one of its databases, and returns what it said.
    pub fn pgbench(&self, database: &str, settings: &str, options: &[&str]) -> Result<String, ClusterError> {
        let socket = self.socket.to_string_lossy().into_owned();
        let arguments: Vec<&str> = options.iter().copied().chain(["-h", &socket, "-U", "parterre", database]).collect();
        let output = self.command("pgbench").args(&arguments).env("PGOPTIONS", settings).current_dir("/").output()?;
        check("pgbench", &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn is_running(&self) -> bool {
        let data = self.data.to_string_lossy().into_owned();
        self.run("pg_ctl", &["-D", &data, "status"]).is_ok()
    }

    /// PostgreSQL refuses to run as root, so its user must be able to reach the folder; if the checkout is in a private
    /// home, the data is kept beside the machine's other temporary files that last.
    fn where_its_user_can(mut self, folder: &Path) -> Result<Self, ClusterError> {
        let Some(user) = self.user else { return Ok(self) };
        self.own(folder)?;
        let reachable = Command::new("setpriv").args(privileges(user)).arg("test").arg("-w").arg(folder).status()?;
        if !reachable.success() {
            let name = self.socket.file_name().unwrap_or_default().to_owned();
            let shared = Path::new("/var/tmp").join(name);
            std::fs::create_dir_all(&shared)?;
            self.own(&shared)?;
            self.data = shared.join("data");
        }
        Ok(self)
    }

    fn own(&self, path: &Path) -> Result<(), ClusterError> {
        if let Some(user) = self.user {
            let output = Command::new("chown").arg(user).arg(path).output()?;
            check("chown", &output)?;
        }
        Ok(())
    }

    /// One of PostgreSQL's programs, as the cluster's user.
    fn command(&self, program: &str) -> Command {
        let path = self.binaries.join(program);
        match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(privileges(user)).arg(path);
                command
            }
            None => Command::new(path),
        }
    }

    /// Runs one of PostgreSQL's programs.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Output, ClusterError> {
        let mut command = self.command(program);
        // pg_ctl start leaves a server behind that would keep our pipes open.
        let output = if arguments.last() == Some(&"start") {
            let status = command
                .args(arguments)
                .current_dir("/")
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()?;
            Output { status, stdout: Vec::new(), stderr: b"see the log in its folder".to_vec() }
        } else {
            command.args(arguments).current_dir("/").output()?
        };
        check(program, &output)?;
        Ok(output)
    }
}

fn privileges(user: &str) -> [String; 4] {
    [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned(), "--".to_owned()]
}

fn check(program: &str, output: &Output) -> Result<(), ClusterError> {
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ClusterError::Failed { program: program.to_owned(), message })
}

fn is_root() -> Result<bool, ClusterError> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "0")
}

/// The user that PostgreSQL's package makes, or another one without rights.
fn unprivileged_user() -> Result<&'static str, ClusterError> {
    let known = |user: &&str| Command::new("id").arg(user).output().is_ok_and(|output| output.status.success());
    ["postgres", "nobody"].into_iter().find(known).ok_or(ClusterError::NotInstalled)
}

/// Where PostgreSQL's programs are: on the path, or where Debian keeps them, the newest first.
fn binaries() -> Result<PathBuf, ClusterError> {
    if Command::new("initdb").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(PathBuf::new());
    }
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, path)| path.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop().map(|(_, path)| path).ok_or(ClusterError::NotInstalled)
}
