//! `kernels new`: a crate with a kernel, its tests, and the command `kernels`.

use crate::error::CommandOutcome;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Creates a crate with a kernel, a test, a bench, the command `kernels`, CI and editor settings
#[derive(Args)]
pub(super) struct NewArgs {
    /// The folder to create, or an empty one such as `.`; its last component names the crate
    path: PathBuf,
    /// The kernel to start with
    #[arg(long, value_enum, default_value_t = Template::Elementwise)]
    template: Template,
    /// Where the crate's dependencies are: the folder of kernels-rs, or the URL of its git
    /// repository; by default the folder that this command was built from
    #[arg(long, value_name = "FOLDER|URL", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))]
    from: String,
}

/// Kernels that a crate starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Template {
    /// Each thread computes an element
    Elementwise,
    /// Each block adds the elements of a row
    Reduction,
    /// A matrix product by tiles in shared memory
    Tiled,
    /// Attention with a running softmax
    Attention,
}

/// Error that keeps a crate from being created.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("`{name}` cannot be the name of a crate: use a-z, 0-9, - and _, and a letter first")]
    Name { name: String },
    #[error("`{name}` cannot be the name of a crate: {why}; choose another last component of the path")]
    Reserved { name: String, why: &'static str },
    #[error("{} exists already and is not an empty folder; choose another path", .path.display())]
    Exists { path: PathBuf },
    #[error("{from} is not the folder of kernels-rs: it has no `kernel-dsl`; name one, or a git URL, with --from")]
    From { from: String },
    #[error("cannot write {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Template {
    /// Returns the name of the kernel and the text of the crate's library.
    fn kernel(self) -> (&'static str, &'static str) {
        match self {
            Template::Elementwise => ("axpy", include_str!("../templates/elementwise.rs")),
            Template::Reduction => ("row_sums", include_str!("../templates/reduction.rs")),
            Template::Tiled => ("product@t16", include_str!("../templates/tiled.rs")),
            Template::Attention => ("attend@d64", include_str!("../templates/attention.rs")),
        }
    }
}

/// Files of every crate, with their placeholders.
const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("../templates/Cargo.toml.in")),
    ("README.md", include_str!("../templates/README.md.in")),
    (".gitignore", "/target\n"),
    ("src/main.rs", include_str!("../templates/main.rs.in")),
    ("tests/kernels.rs", include_str!("../templates/test.rs.in")),
    ("benches/costs.rs", include_str!("../templates/bench.rs.in")),
    (".github/workflows/ci.yml", include_str!("../templates/ci.yml")),
    (".vscode/settings.json", include_str!("../templates/settings.json")),
];

/// Format of the crate, as the templates have it.
const FORMAT: (&str, &str) = ("rustfmt.toml", "max_width = 120\nuse_small_heuristics = \"Max\"\n");

impl NewArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, crate::error::Error> {
        // The names of `.` and `..` are those of the folders.
        let named = match self.path.file_name() {
            Some(_) => self.path.clone(),
            None => self.path.canonicalize().unwrap_or_default(),
        };
        let name = named.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if !(name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits)) {
            return Err(Error::Name { name }.into());
        }
        if let Some(why) = reserved(&name.replace('-', "_")) {
            return Err(Error::Reserved { name, why }.into());
        }
        if self.path.exists() && !is_empty_folder(&self.path) {
            return Err(Error::Exists { path: self.path.clone() }.into());
        }
        let (kernel, library) = self.template.kernel();
        let values = [("name", name.clone()), ("crate", name.replace('-', "_")), ("kernel", kernel.to_string())];
        let places =
            ["kernel-dsl", "runtime", "kernels-rs-command"].map(|package| Ok((package, self.dependency(package)?)));
        let places = places.into_iter().collect::<Result<Vec<_>, Error>>()?;
        let filled = |text: &str| {
            let all = values.iter().chain(&places);
            all.fold(text.to_string(), |text, (key, value)| text.replace(&format!("{{{{{key}}}}}"), value))
        };
        for (file, text) in FILES.into_iter().chain([FORMAT, ("src/lib.rs", library)]) {
            write(&self.path.join(file), &filled(text))?;
        }
        writeln!(out, "{}: a crate with the kernel {kernel}. Next:", self.path.display())?;
        let check = format!("run -- check '{}::*'", name.replace('-', "_"));
        for command in ["test", &check, &format!("run -- inspect {kernel} --serve")] {
            writeln!(out, "  cargo {command}")?;
        }
        Ok(CommandOutcome::Success)
    }

    /// Returns the place of a dependency as Cargo.toml writes it.
    fn dependency(&self, package: &str) -> Result<String, Error> {
        if self.from.contains("://") || self.from.starts_with("git@") {
            return Ok(format!("git = {:?}", self.from));
        }
        let folder = if package == "kernels-rs-command" { "kernels-rs/command" } else { package };
        let no_folder = || Error::From { from: self.from.clone() };
        let place = Path::new(&self.from).join(folder).canonicalize().map_err(|_| no_folder())?;
        Ok(format!("path = {:?}", place.to_string_lossy()))
    }
}

/// Returns why cargo cannot build a crate of this name; `None` if it can.
fn reserved(name: &str) -> Option<&'static str> {
    // `gen` is a keyword since edition 2024, which syn does not know.
    if syn::parse_str::<syn::Ident>(name).is_err() || name == "gen" {
        return Some("it is a keyword of Rust");
    }
    Some(match name {
        "alloc" | "core" | "proc_macro" | "std" | "test" => "Rust's own library has that name",
        "kernel_dsl" | "kernels_rs_command" | "runtime" => "a dependency of the crate has that name",
        _ => return None,
    })
}

/// Returns whether a path is a folder without entries other than git's.
fn is_empty_folder(path: &Path) -> bool {
    let entries = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    entries.is_ok_and(|names: Vec<OsString>| names.iter().all(|name| name == ".git"))
}

/// Writes a file and creates its folders.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|source| Error::Write { path: path.to_path_buf(), source })
}
