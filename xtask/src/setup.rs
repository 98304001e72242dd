//! `cargo xtask setup`: what cargo cannot bring. A C++ compiler and libclang for RocksDB, Java and Maven for Kafka,
//! PostgreSQL; a browser, Node.js and Prometheus's own checker for the tests of the dashboard.
//!
//! As root on Debian or Ubuntu the missing ones are installed; elsewhere the exact commands are printed, with what
//! cannot run until then.

use crate::{browser, postgres, process, rocksdb};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something that has to be on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A compiler for C and C++.
    Compiler,
    /// The shared library with which the bindings of RocksDB are generated.
    Libclang,
    /// A JDK, 17 or newer.
    Java,
    /// Maven, which fetches the jars of Kafka.
    Maven,
    /// A PostgreSQL server.
    Postgres,
    /// A real browser.
    Chromium,
    /// What drives it.
    Node,
    /// What installs that.
    Npm,
    /// The checker of Prometheus.
    Promtool,
}

impl Need {
    /// What the engine and its proofs need, in the order in which it is looked for.
    pub const ENGINE: [Self; 5] = [Self::Compiler, Self::Libclang, Self::Java, Self::Maven, Self::Postgres];
    /// What the tests of the dashboard need.
    pub const PAGE: [Self; 4] = [Self::Chromium, Self::Node, Self::Npm, Self::Promtool];

    fn name(self) -> &'static str {
        match self {
            Self::Compiler => "a C and C++ compiler",
            Self::Libclang => "libclang",
            Self::Java => "a JDK, 17 or newer",
            Self::Maven => "Maven",
            Self::Chromium => "Chromium",
            Self::Node => "Node.js, 20 or newer",
            Self::Npm => "npm",
            Self::Promtool => "promtool",
            Self::Postgres => "PostgreSQL",
        }
    }

    fn without(self) -> &'static str {
        match self {
            Self::Compiler => "crates with C code do not compile: zstd, lz4, RocksDB",
            Self::Libclang => "mailer-state-rocksdb, and what stands on it, does not compile",
            Self::Chromium | Self::Node | Self::Npm => "the dashboard is not looked at in a browser: browser-test",
            Self::Promtool => "metrics and alert rules are not shown to Prometheus",
            Self::Java | Self::Maven => "no Kafka broker can be started: kafka, demo (it runs in process), crash-test",
            Self::Postgres => {
                "no database can be started: postgres, and the tests of mailer-postgres against a real one"
            }
        }
    }

    /// Names of the Debian package, best first: which of them exists depends on the release.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Compiler => &["g++"],
            Self::Libclang => &["libclang-dev"],
            Self::Java => &["openjdk-17-jdk-headless", "openjdk-21-jdk-headless", "default-jdk-headless"],
            Self::Maven => &["maven"],
            Self::Chromium => &["chromium", "chromium-browser"],
            Self::Node => &["nodejs"],
            Self::Npm => &["npm"],
            Self::Promtool => &["prometheus"],
            Self::Postgres => &["postgresql"],
        }
    }

    fn elsewhere(self) -> &'static str {
        match self {
            Self::Compiler => "Fedora: dnf install gcc-c++; macOS: xcode-select --install",
            Self::Libclang => "Fedora: dnf install clang-devel; macOS: brew install llvm; or set LIBCLANG_PATH",
            Self::Java => "Fedora: dnf install java-21-openjdk-devel; macOS: brew install openjdk@21",
            Self::Maven => "Fedora: dnf install maven; macOS: brew install maven",
            Self::Chromium => "Fedora: dnf install chromium; elsewhere: set MAILER_CHROMIUM to a Chromium",
            Self::Node | Self::Npm => "Fedora: dnf install nodejs npm; macOS: brew install node",
            Self::Promtool => "macOS: brew install prometheus; elsewhere it comes with the release of Prometheus",
            Self::Postgres => "Fedora: dnf install postgresql-server; macOS: brew install postgresql",
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::Compiler => answers(&tool("CC", "cc")) && answers(&tool("CXX", "c++")),
            Self::Libclang => libclang_folders().iter().any(|folder| holds_libclang(folder)),
            Self::Java => java_major().is_some_and(|major| major >= 17),
            Self::Maven => answers("mvn"),
            Self::Chromium => browser::browser().is_some(),
            Self::Node => node_major().is_some_and(|major| major >= 20),
            Self::Npm => answers("npm"),
            Self::Promtool => answers("promtool"),
            Self::Postgres => postgres::are_there(),
        }
    }
}

/// Installs or names what is missing, then compiles RocksDB into the cache. Fails when something is still missing.
pub fn run() -> Result<()> {
    let missing = ensure(&[&Need::ENGINE[..], &Need::PAGE[..]].concat())?;
    if !missing.contains(&Need::Compiler) && !missing.contains(&Need::Libclang) {
        println!("RocksDB: {}", rocksdb::ensure()?.display());
    }
    if !missing.is_empty() {
        bail!("still missing: {}", names(&missing));
    }
    println!("setup: everything is there");
    Ok(())
}

/// Installs what of `needs` is missing where that is possible, and returns what is missing still, after saying how to get
/// it.
pub fn ensure(needs: &[Need]) -> Result<Vec<Need>> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(missing);
    }
    println!("missing: {}", names(&missing));
    if is_root() && Path::new("/usr/bin/apt-get").exists() {
        install(&missing)?;
    }
    let missing = self::missing(needs);
    for need in &missing {
        print!("{}", advice(*need));
    }
    Ok(missing)
}

/// What of `needs` is not on this machine.
pub fn missing(needs: &[Need]) -> Vec<Need> {
    needs.iter().copied().filter(|need| !need.is_there()).collect()
}

/// Fails with what to do when `need` is not there.
pub(crate) fn require(need: Need) -> Result<()> {
    match need.is_there() {
        true => Ok(()),
        false => bail!("{}", advice(need).trim_end()),
    }
}

fn install(needs: &[Need]) -> Result<()> {
    apt(&["update", "-q"])?;
    let packages: Vec<&str> = needs.iter().filter_map(|need| pick(need.packages(), apt_has)).collect();
    let arguments = ["install", "-y", "-q", "--no-install-recommends"];
    apt(&[arguments.as_slice(), packages.as_slice()].concat())
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    println!("{}", process::describe(&command));
    process::run(&mut command).context("installing with apt-get failed: install by hand and call setup again")
}

/// The first name that the package manager knows.
fn pick(names: &'static [&'static str], known: impl Fn(&str) -> bool) -> Option<&'static str> {
    names.iter().copied().find(|name| known(name))
}

fn apt_has(package: &str) -> bool {
    // `apt-cache show` also answers for a name that other packages merely mention: a version is what counts.
    let answer = Command::new("apt-cache").args(["show", "--no-all-versions", package]).output();
    answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).contains("Version: "))
}

fn advice(need: Need) -> String {
    format!(
        "{} is missing. Without it: {}.\n  Debian, Ubuntu: apt-get install {}; {}\n",
        need.name(),
        need.without(),
        need.packages()[0],
        need.elsewhere()
    )
}

/// For messages.
pub(crate) fn names(needs: &[Need]) -> String {
    needs.iter().map(|need| need.name()).collect::<Vec<_>>().join("; ")
}

fn is_root() -> bool {
    let answer = Command::new("id").arg("-u").output();
    answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).trim() == "0")
}

fn tool(variable: &str, otherwise: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| otherwise.to_owned())
}

pub(crate) fn answers(program: &str) -> bool {
    process::capture(Command::new(program).arg("--version")).is_ok()
}

fn node_major() -> Option<u32> {
    let answer = process::capture(Command::new("node").arg("--version")).ok()?;
    String::from_utf8_lossy(&answer.stdout).trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn java_major() -> Option<u32> {
    let answer = process::capture(Command::new("java").arg("-version")).ok()?;
    java_major_of(&String::from_utf8_lossy(&answer.stderr))
}

/// `openjdk version "17.0.15" 2025-04-15` is 17; releases before 9 called themselves `1.8`.
fn java_major_of(text: &str) -> Option<u32> {
    let version = text.split('"').nth(1)?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    match numbers.next()? {
        1 => numbers.next(),
        major => Some(major),
    }
}

/// Where the bindings' generator looks as well: its own variable, llvm's folders, the system's.
fn libclang_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from).into_iter().collect();
    if let Ok(answer) = process::capture(Command::new("llvm-config").arg("--libdir")) {
        folders.push(String::from_utf8_lossy(&answer.stdout).trim().into());
    }
    folders.extend(subfolders("/usr/lib").flat_map(|folder| [folder.join("lib"), folder]));
    let fixed =
        ["/usr/lib64", "/usr/local/lib", "/opt/homebrew/opt/llvm/lib", "/Library/Developer/CommandLineTools/usr/lib"];
    folders.extend(fixed.map(PathBuf::from));
    folders
}

fn subfolders(folder: &str) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir())
}

fn holds_libclang(path: &Path) -> bool {
    // The variable may name the file itself.
    let mut files = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    is_libclang(path) || files.any(|file| is_libclang(&file))
}

/// `libclang.so`, `libclang-14.so.1`, `libclang.dylib`; not `libclang-cpp.so`, which is another library.
fn is_libclang(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let shared = name.contains(".so") || name.ends_with(".dylib");
    let rest = name.strip_prefix("libclang").unwrap_or_default();
    shared && rest.trim_start_matches(|c: char| c == '-' || c == '.' || c.is_ascii_digit()).starts_with(['s', 'd'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_versions_of_three_decades() {
        assert_eq!(java_major_of("openjdk version \"17.0.15\" 2025-04-15\n"), Some(17));
        assert_eq!(java_major_of("java version \"1.8.0_402\"\n"), Some(8));
        assert_eq!(java_major_of("openjdk version \"21\" 2023-09-19\n"), Some(21));
        assert_eq!(java_major_of("openjdk version \"26-ea\" 2026-03-17\n"), Some(26));
        assert_eq!(java_major_of("command not found"), None);
    }

    #[test]
    fn libclang_is_told_from_its_neighbours() {
        for name in ["libclang.so", "libclang.so.1", "libclang-14.so.14.0.6", "libclang.dylib"] {
            assert!(is_libclang(Path::new(name)), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclang_rt.asan-x86_64.so", "libclang.a", "libclangBasic.a", "other.so"] {
            assert!(!is_libclang(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn the_package_is_the_first_one_this_release_has() {
        assert_eq!(pick(Need::Java.packages(), |name| name.contains("21")), Some("openjdk-21-jdk-headless"));
        assert_eq!(pick(Need::Java.packages(), |_| true), Some("openjdk-17-jdk-headless"));
        assert_eq!(pick(Need::Java.packages(), |_| false), None);
    }

    #[test]
    fn advice_names_the_command_and_the_loss() {
        for need in [&Need::ENGINE[..], &Need::PAGE[..]].concat() {
            let advice = advice(need);
            assert!(advice.contains("apt-get install") && advice.contains("Without it: "), "{advice}");
        }
    }
}
