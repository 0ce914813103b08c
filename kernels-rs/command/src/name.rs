//! Kernels and instances by name.
//!
//! A kernel has its Rust name, `matmul`. Where several modules have a kernel of that name, enough
//! of the path distinguishes them: `gemm::matmul`. An instance has one of these forms:
//!
//! - `gemm@tile`: the name that the kernel declares for the instance;
//! - `matmul<T = 16>`: with the generic arguments of an instance, declared or not. An argument with
//!   a name sets that parameter, and the others fill the remaining parameters in order;
//! - `matmul::<16>`: as Rust writes the instance.
//!
//! A pattern has `*` for any characters and `?` for one character. The pattern selects the kernels
//! and the declared instances whose names match: `gemm*`, `*@f16*`, `attention::*`,
//! `gemm<f32, *, BM = 64, *>`.

use super::did_you_mean::nearest;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Generic, GenericKind, Instance, ItemArgument, Program, serial};
use kernel_dsl::{Artifact, Declared};
use std::borrow::Borrow;

/// Number of instances that an error lists.
const MAX_LISTED: usize = 12;

/// Error returned when a name does not identify a kernel or an instance.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("unknown kernel `{name}`{}", suggestions(.nearest, .known))]
    Unknown { name: String, nearest: Option<String>, known: Vec<&'static str> },
    #[error("no kernel and no declared instance matches `{pattern}`; `kernels list -v` prints both")]
    NoMatch { pattern: String },
    #[error(
        "`{name}` is not a kernel's name: expected one such as `saxpy`, `gemm@tile`, `matmul<T = 16>` or `gemm::matmul`{}",
        did_you_mean(.nearest)
    )]
    Malformed { name: String, nearest: Option<String> },
    #[error("several kernels are called `{name}`; write the path: {}", .paths.join(", "))]
    Ambiguous { name: String, paths: Vec<String> },
    #[error("`{name}` has {} instances; choose one: {}", .instances.len(), list_names(.instances, "kernels list -v"))]
    Several { name: String, instances: Vec<String> },
    #[error("`{name}` names several kernels: {}", .kernels.join(", "))]
    SeveralKernels { name: String, kernels: Vec<&'static str> },
    #[error("`{name}` declares no instance; give its constants, as in `{name}<…>`")]
    NoInstance { name: &'static str },
    #[error("`{kernel}` declares no instance `{given}`{}; its instances: {}", did_you_mean(.nearest), list_names(.instances, "kernels list -v"))]
    NoSuchInstance { given: String, kernel: &'static str, nearest: Option<String>, instances: Vec<String> },
    #[error("`{given}` does not fit `{kernel}`, which is generic over {}", constants(.generics))]
    Constants { given: String, kernel: &'static str, generics: Vec<Generic> },
    #[error("kernel {kernel}: {source}")]
    Hir { kernel: &'static str, source: serial::Error },
}

/// Instance of a kernel, declared or not.
#[derive(Clone, Debug)]
pub(super) struct SelectedInstance {
    pub(super) artifact: &'static Artifact,
    pub(super) instance: Instance,
}

impl SelectedInstance {
    fn declared(artifact: &'static Artifact, declared: &Declared) -> SelectedInstance {
        SelectedInstance { artifact, instance: Instance(declared.constants.to_vec()) }
    }

    /// Returns the name of the instance as all output prints it.
    pub(super) fn name(&self) -> String {
        self.artifact.instance_name(&self.instance.0)
    }
}

/// Returns the instances that `names` select, each once, in the order of the names; all declared
/// instances if there are no names.
pub(super) fn instances(names: &[String]) -> Result<Vec<SelectedInstance>, Error> {
    let kernels = kernel_dsl::kernels();
    if names.is_empty() {
        return Ok(kernels.iter().flat_map(|artifact| declared(artifact)).collect());
    }
    let mut all: Vec<SelectedInstance> = Vec::new();
    for name in names {
        for selected in select(name, &kernels)? {
            let same = |other: &SelectedInstance| {
                std::ptr::eq(other.artifact, selected.artifact) && other.instance == selected.instance
            };
            if !all.iter().any(same) {
                all.push(selected);
            }
        }
    }
    Ok(all)
}

/// Returns the only instance that `name` selects.
pub(super) fn instance(name: &str) -> Result<SelectedInstance, Error> {
    let mut all = select(name, &kernel_dsl::kernels())?;
    match all.len() {
        1 => Ok(all.remove(0)),
        _ => {
            let instances = all.iter().map(SelectedInstance::name).collect();
            Err(Error::Several { name: name.to_string(), instances })
        }
    }
}

/// Returns the only kernel that `name` selects, by its own name or by those of its instances.
pub(super) fn kernel(name: &str) -> Result<&'static Artifact, Error> {
    let kernels = kernel_dsl::kernels();
    let mut found = match NameForm::of(name) {
        Some(NameForm::Kernel(path)) => vec![find(path, name, &kernels)?],
        _ => select(name, &kernels)?.into_iter().map(|selected| selected.artifact).collect(),
    };
    found.dedup_by_key(|artifact| std::ptr::from_ref::<Artifact>(artifact));
    match found[..] {
        [artifact] => Ok(artifact),
        _ => {
            let kernels = found.iter().map(|artifact| artifact.name).collect();
            Err(Error::SeveralKernels { name: name.to_string(), kernels })
        }
    }
}

/// Returns the instances that a kernel declares.
fn declared(artifact: &'static Artifact) -> impl Iterator<Item = SelectedInstance> {
    artifact.instances.iter().map(move |declared| SelectedInstance::declared(artifact, declared))
}

/// Returns the kernel's HIR.
pub(super) fn program(artifact: &Artifact) -> Result<Program, Error> {
    artifact.program().map_err(|source| Error::Hir { kernel: artifact.name, source })
}

/// Name as its parts.
enum NameForm<'a> {
    /// Path of a kernel, which means all declared instances.
    Kernel(&'a str),
    /// Path of a kernel, and the declared name of an instance.
    Named(&'a str, &'a str),
    /// Path of a kernel, and generic arguments, each with the name of its parameter if given.
    Spelled(&'a str, Vec<(Option<&'a str>, Constant)>),
    Pattern,
}

impl<'a> NameForm<'a> {
    /// Splits a name. Returns `None` for one that is malformed.
    fn of(name: &'a str) -> Option<NameForm<'a>> {
        let name = name.trim();
        if name.contains(['*', '?']) {
            return Some(NameForm::Pattern);
        }
        if let Some((path, label)) = name.split_once('@') {
            return Some(NameForm::Named(path.trim_end(), label.trim_start()));
        }
        let Some((path, rest)) = name.split_once('<') else { return Some(NameForm::Kernel(name)) };
        let path = path.trim_end();
        let path = path.strip_suffix("::").unwrap_or(path).trim_end();
        let arguments = rest.strip_suffix('>')?.trim_end();
        let arguments = arguments.strip_suffix(',').unwrap_or(arguments).split(',').map(|argument| {
            Some(match argument.split_once('=') {
                Some((parameter, value)) => (Some(parameter.trim()), constant(value.trim())?),
                None => (None, constant(argument.trim())?),
            })
        });
        Some(NameForm::Spelled(path, arguments.collect::<Option<_>>()?))
    }
}

/// Placeholder hash of an item known only by name.
const UNKNOWN: u64 = 0;

/// Parses a generic argument: a number, a `bool`, a scalar type, or the name of an item.
fn constant(text: &str) -> Option<Constant> {
    match text {
        "true" => Some(Constant::Bool(true)),
        "false" => Some(Constant::Bool(false)),
        text => match Scalar::from_name(text) {
            Some(scalar) => Some(Constant::Scalar(scalar)),
            None if text.starts_with(|c: char| c.is_alphabetic() || c == '_') => Some(Constant::Item(ItemArgument {
                name: text.to_string().into(),
                hash: UNKNOWN,
                library: Vec::new().into(),
            })),
            None => text.parse().map(Constant::Usize).or_else(|_| text.parse().map(Constant::Integer)).ok(),
        },
    }
}

/// Returns the instances that `name` selects; at least one.
fn select(name: &str, kernels: &[&'static Artifact]) -> Result<Vec<SelectedInstance>, Error> {
    let malformed = || Error::Malformed { name: name.to_string(), nearest: nearest_of(name, kernels) };
    match NameForm::of(name).ok_or_else(malformed)? {
        NameForm::Kernel(path) => {
            let artifact = find(path, name, kernels)?;
            match artifact.instances {
                [] => Err(Error::NoInstance { name: artifact.name }),
                _ => Ok(declared(artifact).collect()),
            }
        }
        NameForm::Named(path, label) => {
            let artifact = find(path, name, kernels)?;
            let wanted = format!("{}@{label}", artifact.name);
            let found = artifact.instances.iter().find(|declared| declared.name == wanted);
            let found = found.map(|declared| SelectedInstance::declared(artifact, declared));
            found.map(|selected| vec![selected]).ok_or_else(|| Error::NoSuchInstance {
                nearest: nearest(&wanted, artifact.instances.iter().map(|i| i.name)).map(str::to_string),
                given: wanted,
                kernel: artifact.name,
                instances: artifact.instances.iter().map(|i| i.name.to_string()).collect(),
            })
        }
        NameForm::Spelled(path, arguments) => {
            let artifact = find(path, name, kernels)?;
            let instance = instance_with(artifact, arguments, name)?;
            Ok(vec![SelectedInstance { artifact, instance }])
        }
        NameForm::Pattern => {
            let pattern = NamePattern::new(name);
            let found: Vec<_> = kernels.iter().flat_map(|artifact| pattern.of_kernel(artifact)).collect();
            if found.is_empty() { Err(Error::NoMatch { pattern: name.to_string() }) } else { Ok(found) }
        }
    }
}

/// Returns the kernel whose path is `path` or ends with it. `name` is the whole name given.
fn find(path: &str, name: &str, kernels: &[&'static Artifact]) -> Result<&'static Artifact, Error> {
    let (module, kernel) = path.rsplit_once("::").unwrap_or(("", path));
    let fits = |a: &&&'static Artifact| a.name == kernel && ends_with(a.module, module);
    let found: Vec<_> = kernels.iter().filter(fits).copied().collect();
    match found[..] {
        [artifact] => Ok(artifact),
        [] => Err(unknown(name, module, kernels)),
        _ => {
            let paths = found.iter().map(|a| format!("{}::{}", a.module, a.name)).collect();
            Err(Error::Ambiguous { name: path.to_string(), paths })
        }
    }
}

/// Returns the instance with those generic arguments.
fn instance_with(artifact: &Artifact, given: Vec<(Option<&str>, Constant)>, name: &str) -> Result<Instance, Error> {
    let program = program(artifact)?;
    let generics = &program.functions[0].generics;
    let refused = || Error::Constants { given: name.to_string(), kernel: artifact.name, generics: generics.clone() };
    let mut slots: Vec<Option<Constant>> = vec![None; generics.len()];
    let (named, positional): (Vec<_>, Vec<_>) = given.into_iter().partition(|(parameter, _)| parameter.is_some());
    for (parameter, constant) in named {
        let slot = generics.iter().position(|g| Some(g.name.as_str()) == parameter).ok_or_else(refused)?;
        if slots[slot].replace(constant).is_some() {
            return Err(refused());
        }
    }
    for (_, constant) in positional {
        *slots.iter_mut().find(|slot| slot.is_none()).ok_or_else(refused)? = Some(constant);
    }
    let of_parameter = |(slot, generic): (Option<Constant>, &Generic)| match (slot?, &generic.kind) {
        // A number takes the type of the parameter.
        (Constant::Usize(n), GenericKind::Constant(ty)) if *ty != Scalar::Usize => Some(Constant::Integer(n.into())),
        (constant, _) => Some(of_declared(artifact, constant)),
    };
    let constants = slots.into_iter().zip(generics).map(of_parameter);
    let constants: Vec<_> = constants.collect::<Option<_>>().ok_or_else(refused)?;
    let fits = |(constant, generic): (&Constant, &Generic)| match (constant, &generic.kind) {
        (Constant::Usize(_), GenericKind::Constant(ty)) => *ty == Scalar::Usize,
        (Constant::Integer(n), GenericKind::Constant(ty)) => *ty != Scalar::Usize && ty.holds(*n),
        (Constant::Bool(_), GenericKind::Constant(ty)) => *ty == Scalar::Bool,
        (Constant::Scalar(_), GenericKind::Type(_)) => true,
        (Constant::Item(item), GenericKind::Type(_)) => item.hash != UNKNOWN,
        _ => false,
    };
    if constants.iter().zip(generics).all(fits) { Ok(Instance(constants)) } else { Err(refused()) }
}

/// Converts the name of a struct, enum or function to the constant in the kernel's declared
/// instances.
fn of_declared(artifact: &Artifact, constant: Constant) -> Constant {
    let Constant::Item(item) = &constant else { return constant };
    let mut declared = artifact.instances.iter().flat_map(|i| i.constants);
    let found = declared.find(|c| matches!(c, Constant::Item(known) if known.name == item.name));
    found.cloned().unwrap_or(constant)
}

/// Pattern in which `*` matches any characters and `?` matches one.
struct NamePattern(Vec<char>);

impl NamePattern {
    fn new(text: &str) -> NamePattern {
        NamePattern(plain(text).chars().collect())
    }

    /// Returns the declared instances of a kernel that the pattern selects: all if it matches the
    /// kernel's name.
    fn of_kernel(&self, artifact: &'static Artifact) -> Vec<SelectedInstance> {
        let path = format!("{}::{}", artifact.module, artifact.name);
        let module = path.strip_suffix(artifact.name).unwrap_or_default();
        // The name alone, and after each tail of the module's path.
        let tails = module.match_indices("::").map(|(at, _)| &module[at + 2..]).chain([module]);
        let tails: Vec<_> = tails.collect();
        let matches = |name: &str| tails.iter().any(|tail| self.matches(&plain(&format!("{tail}{name}"))));
        if matches(artifact.name) {
            return declared(artifact).collect();
        }
        let selected = |declared: &&Declared| {
            let rust = Instance(declared.constants.to_vec()).name(artifact.name);
            matches(declared.name) || matches(&artifact.name_with_arguments(declared.constants)) || matches(&rust)
        };
        artifact
            .instances
            .iter()
            .filter(selected)
            .map(|declared| SelectedInstance::declared(artifact, declared))
            .collect()
    }

    /// Returns whether the whole of `text` matches.
    fn matches(&self, text: &str) -> bool {
        // Pattern and text after the last `*`, to which a mismatch returns.
        let (mut retry, mut p, mut t) = (None, 0, 0);
        let text: Vec<_> = text.chars().collect();
        while t < text.len() {
            match self.0.get(p) {
                Some('*') => {
                    retry = Some((p, t));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
                _ => match &mut retry {
                    Some((star, from)) => {
                        *from += 1;
                        (p, t) = (*star + 1, *from);
                    }
                    None => return false,
                },
            }
        }
        self.0[p..].iter().all(|c| *c == '*')
    }
}

/// Returns a name without spaces and without the `::` before generic arguments.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    name.replace("::<", "<")
}

/// Returns whether `path` ends with all segments of `end`.
fn ends_with(path: &str, end: &str) -> bool {
    end.is_empty() || path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

fn unknown(name: &str, module: &str, kernels: &[&'static Artifact]) -> Error {
    let known = kernels.iter().map(|a| a.name).collect();
    let without_path = name.trim().strip_prefix(module).map_or(name, |rest| rest.trim_start_matches("::"));
    Error::Unknown { name: name.to_string(), nearest: nearest_of(without_path, kernels), known }
}

/// Returns the kernel or declared instance whose name is most similar to `name`.
fn nearest_of(name: &str, kernels: &[&'static Artifact]) -> Option<String> {
    let instances = kernels.iter().flat_map(|a| a.instances).map(|i| i.name);
    nearest(name, instances.chain(kernels.iter().map(|a| a.name))).map(str::to_string)
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (is `{name}` meant?)"))
}

/// Returns suggestions in place of an unknown kernel: the nearest name, or the first few.
fn suggestions(nearest: &Option<String>, known: &[&str]) -> String {
    match (nearest, known) {
        (Some(_), _) => format!("{}; `kernels list` prints all", did_you_mean(nearest)),
        (None, []) => "; there are none in this program: `main` must use the crate that has them, \
                       as in `use my_kernels as _;`"
            .to_string(),
        (None, known) => format!("; there are {}", list_names(known, "kernels list")),
    }
}

/// Lists names, the first few if there are many. `command` prints all.
fn list_names<S: Borrow<str>>(names: &[S], command: &str) -> String {
    match names.len().checked_sub(MAX_LISTED) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more; `{command}` prints all", names[..MAX_LISTED].join(", ")),
    }
}

fn constants(generics: &[Generic]) -> String {
    if generics.is_empty() {
        return "nothing".to_string();
    }
    let kind = |g: &Generic| match &g.kind {
        GenericKind::Constant(ty) => format!("{}: {ty}", g.name),
        GenericKind::Type(_) => format!("the type {}", g.name),
    };
    generics.iter().map(kind).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Result<Vec<String>, Error> {
        Ok(select(name, &kernel_dsl::kernels())?.iter().map(SelectedInstance::name).collect())
    }

    #[test]
    fn each_form_of_a_name_selects_the_instance() {
        assert_eq!(find("saxpy").unwrap(), ["saxpy"]);
        assert_eq!(find("matmul").unwrap(), ["matmul<T = 16>", "matmul<T = 32>"]);
        for name in
            ["matmul::<8>", "gemm::matmul::< 8 >", "kernels_rs::gemm::matmul :: <8,>", "matmul<8>", "matmul<T=8>"]
        {
            assert_eq!(find(name).unwrap(), ["matmul<T = 8>"], "{name}");
        }
        // Named arguments may come first, and an instance with a declared name has that name.
        for name in ["sum_splits@f32_v4", "tiled::sum_splits @ f32_v4", "sum_splits<V = 4, f32, Identity>"] {
            assert_eq!(find(name).unwrap(), ["sum_splits@f32_v4"], "{name}");
        }
    }

    /// Checks that each declared instance is selected by its name, by its generic arguments, and as
    /// Rust names it.
    #[test]
    fn each_declared_instance_is_found_by_each_of_its_names() {
        for artifact in kernel_dsl::kernels() {
            for declared in artifact.instances {
                let rust = Instance(declared.constants.to_vec()).name(artifact.name);
                for name in [declared.name, &artifact.name_with_arguments(declared.constants), &rust] {
                    let path = format!("{}::{name}", artifact.module);
                    assert_eq!(find(&path).unwrap(), [declared.name], "{path}");
                }
            }
        }
    }

    #[test]
    fn patterns_select_kernels_and_instances() {
        assert_eq!(find("matm?l").unwrap(), ["matmul<T = 16>", "matmul<T = 32>"]);
        assert_eq!(find("matmul<* = 3*>").unwrap(), ["matmul<T = 32>"]);
        assert_eq!(find("matmul::<1*>").unwrap(), ["matmul<T = 16>"]);
        assert_eq!(find("*::gemm::matm*").unwrap(), ["matmul<T = 16>", "matmul<T = 32>"]);
        assert_eq!(find("sum_splits@f16*").unwrap(), ["sum_splits@f16_v4", "sum_splits@f16_v1"]);
        assert_eq!(find("*").unwrap().len(), instances(&[]).unwrap().len());
        assert_eq!(find("x*").unwrap_err(), Error::NoMatch { pattern: "x*".into() });
        let twice = ["matmul".to_string(), "mat*".to_string()];
        assert_eq!(instances(&twice).unwrap().len(), 2);
    }

    #[test]
    fn patterns_match_whole_names() {
        let matches = |pattern: &str, text: &str| NamePattern::new(pattern).matches(text);
        for (pattern, text) in [("*", ""), ("a*", "a"), ("a*b*c", "aXbbYc"), ("?b", "éb"), ("*ab", "aab"), ("**", "x")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "ba"), ("?", ""), ("a*b", "abc"), ("a?c", "ac"), ("*x*", "aaa")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn unknown_and_unfit_names_are_rejected() {
        let message = |name| find(name).unwrap_err().to_string();
        assert!(message("mm::matmul").starts_with("unknown kernel `mm::matmul` (is `matmul` meant?)"));
        assert!(message("emm::matmul").starts_with("unknown kernel"));
        let nothing = message("nothing like it");
        assert!(nothing.contains("; there are ") && nothing.ends_with(" more; `kernels list` prints all"), "{nothing}");
        for name in [
            "matmul::<true>",
            "matmul::<-1>",
            "matmul::<4294967296>",
            "matmul::<T>",
            "matmul<16, 16>",
            "matmul<U = 16>",
            "matmul<T = 16, T = 16>",
        ] {
            assert_eq!(message(name), format!("`{name}` does not fit `matmul`, which is generic over T: usize"));
        }
        assert_eq!(message("saxpy::<1>"), "`saxpy::<1>` does not fit `saxpy`, which is generic over nothing");
        for name in ["matmul<16", "matmul::<>", "matmul<T=>"] {
            assert!(matches!(find(name), Err(Error::Malformed { .. })), "{name}");
        }
        assert!(message("sum_splits@f32_v5").contains(" (is `sum_splits@f32_v4` meant?); its instances: "));
        let several = instance("matmul").unwrap_err();
        assert_eq!(several.to_string(), "`matmul` has 2 instances; choose one: matmul<T = 16>, matmul<T = 32>");
        assert!(instance("gemm").unwrap_err().to_string().contains(" more; `kernels list -v` prints all"));
    }
}
