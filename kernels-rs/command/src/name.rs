//! Kernels and instances by the names that Rust gives them.
//!
//! `matmul` is a kernel, and `matmul::<16>` an instance of it, declared or not. If several crates
//! have a kernel of the same name, enough of the path distinguishes them: `gemm::matmul::<16>`.

use super::did_you_mean::nearest;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Generic, GenericKind, Instance, Item, Program, serial};

/// Error returned when a name does not identify a kernel or an instance.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no kernel is called `{name}`{}; there {}", meant(.nearest), list(.known))]
    Unknown { name: String, nearest: Option<String>, known: Vec<&'static str> },
    #[error("`{name}` is not a kernel's name: expected one such as `saxpy`, `matmul::<16>` or `gemm::matmul::<16>`{}", meant(.nearest))]
    Malformed { name: String, nearest: Option<String> },
    #[error("several kernels are called `{name}`; write the path: {}", .paths.join(", "))]
    Ambiguous { name: String, paths: Vec<String> },
    #[error("`{name}` has {} instances; write which: {}", .instances.len(), .instances.join(", "))]
    Several { name: &'static str, instances: Vec<&'static str> },
    #[error("`{name}` declares no instance; give its constants, as in `{name}::<…>`")]
    NoInstance { name: &'static str },
    #[error("`{given}` does not fit `{kernel}`, which is generic over {}", constants(.generics))]
    Constants { given: String, kernel: &'static str, generics: Vec<Generic> },
    #[error("kernel {kernel}: {source}")]
    Hir { kernel: &'static str, source: serial::Error },
}

/// Kernel, and one of its instances or all declared ones.
pub(super) struct Named {
    pub(super) artifact: &'static Artifact,
    /// Instance; `None` if only the kernel is named.
    constants: Option<Instance>,
}

impl Named {
    /// Finds the kernel or instance called `name` among `kernels`.
    pub(super) fn find(name: &str, kernels: &[&'static Artifact]) -> Result<Named, Error> {
        let Some((path, constants)) = split(name) else {
            return Err(Error::Malformed { name: name.to_string(), nearest: nearest_of(name, kernels) });
        };
        let (module, kernel) = path.rsplit_once("::").unwrap_or(("", path));
        let fits = |a: &&&'static Artifact| a.name == kernel && ends_with(a.module, module);
        let found: Vec<_> = kernels.iter().filter(fits).copied().collect();
        let artifact = match found[..] {
            [artifact] => artifact,
            [] => return Err(unknown(name, module, kernels)),
            _ => {
                let paths = found.iter().map(|a| format!("{}::{}", a.module, a.name)).collect();
                return Err(Error::Ambiguous { name: path.to_string(), paths });
            }
        };
        let constants = constants.map(|all| Instance(all.0.into_iter().map(|c| of_declared(artifact, c)).collect()));
        if let Some(constants) = &constants {
            let program = program(artifact)?;
            let generics = &program.functions[0].generics;
            let fits = |(constant, generic): (&Constant, &Generic)| match (constant, &generic.kind) {
                (Constant::Usize(_), GenericKind::Constant(ty)) => *ty == Scalar::Usize,
                (Constant::Bool(_), GenericKind::Constant(ty)) => *ty == Scalar::Bool,
                (Constant::Scalar(_), GenericKind::Type(_)) => true,
                (Constant::Item(item), GenericKind::Type(_)) => item.hash != UNKNOWN,
                _ => false,
            };
            if constants.0.len() != generics.len() || !constants.0.iter().zip(generics).all(fits) {
                let (given, generics) = (name.to_string(), generics.clone());
                return Err(Error::Constants { given, kernel: artifact.name, generics });
            }
        }
        Ok(Named { artifact, constants })
    }

    /// Returns the named instance, or the only one of the kernel.
    pub(super) fn one(self) -> Result<Instance, Error> {
        let name = self.artifact.name;
        let mut instances = self.instances();
        match instances.len() {
            0 => Err(Error::NoInstance { name }),
            1 => Ok(instances.remove(0)),
            _ => Err(Error::Several { name, instances: self.artifact.instances.iter().map(|i| i.name).collect() }),
        }
    }

    /// Returns the named instance, or all that the kernel declares.
    pub(super) fn instances(&self) -> Vec<Instance> {
        match &self.constants {
            Some(constants) => vec![constants.clone()],
            None => declared(self.artifact),
        }
    }
}

/// Placeholder hash of an item known only by name.
const UNKNOWN: u64 = 0;

/// Converts the name of a struct, enum or function to the constant in the kernel's declared
/// instances.
fn of_declared(artifact: &Artifact, constant: Constant) -> Constant {
    let Constant::Item(item) = &constant else { return constant };
    let mut declared = artifact.instances.iter().flat_map(|i| i.constants);
    let found = declared.find(|c| matches!(c, Constant::Item(known) if known.name == item.name));
    found.cloned().unwrap_or(constant)
}

/// Returns the instances that a kernel declares.
pub(super) fn declared(artifact: &Artifact) -> Vec<Instance> {
    artifact.instances.iter().map(|i| Instance(i.constants.to_vec())).collect()
}

/// Returns the kernel's HIR.
pub(super) fn program(artifact: &Artifact) -> Result<Program, Error> {
    artifact.program().map_err(|source| Error::Hir { kernel: artifact.name, source })
}

/// Splits a name into path and constants: `matmul::<16, true>` is `matmul` with 16 and true.
fn split(name: &str) -> Option<(&str, Option<Instance>)> {
    let name = name.trim();
    let Some((path, rest)) = name.split_once('<') else { return Some((name, None)) };
    let path = path.trim_end().strip_suffix("::")?.trim_end();
    let constants = rest.strip_suffix('>')?.trim_end();
    let constants = constants.strip_suffix(',').unwrap_or(constants).split(',').map(|text| match text.trim() {
        "true" => Some(Constant::Bool(true)),
        "false" => Some(Constant::Bool(false)),
        text => match Scalar::from_name(text) {
            Some(scalar) => Some(Constant::Scalar(scalar)),
            None if text.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                Some(Constant::Item(Item { name: text.to_string().into(), hash: UNKNOWN, library: Vec::new().into() }))
            }
            None => text.parse().ok().map(Constant::Usize),
        },
    });
    Some((path, Some(Instance(constants.collect::<Option<_>>()?))))
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

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (is `{name}` meant?)"))
}

fn list(known: &[&str]) -> String {
    match known {
        [] => "are none in this program".to_string(),
        known => format!("are {}", known.join(", ")),
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
        let named = Named::find(name, &kernel_dsl::kernels())?;
        Ok(named.instances().iter().map(|i| i.name(named.artifact.name)).collect())
    }

    #[test]
    fn names_follow_rusts_syntax() {
        assert_eq!(find("saxpy").unwrap(), ["saxpy"]);
        assert_eq!(find("matmul").unwrap(), ["matmul::<16>", "matmul::<32>"]);
        for name in ["matmul::<8>", "gemm::matmul::< 8 >", "kernels_rs::gemm::matmul :: <8,>"] {
            assert_eq!(find(name).unwrap(), ["matmul::<8>"], "{name}");
        }
    }

    #[test]
    fn unknown_names_are_reported() {
        let message = |name| find(name).unwrap_err().to_string();
        assert!(message("mm::matmul").starts_with("no kernel is called `mm::matmul` (is `matmul` meant?)"));
        assert!(message("emm::matmul").starts_with("no kernel is called"));
        let nothing = message("nothing like it");
        assert!(nothing.contains("; there are ") && nothing.contains(", matmul, "), "{nothing}");
        assert_eq!(message("matmul::<true>"), "`matmul::<true>` does not fit `matmul`, which is generic over T: usize");
        assert_eq!(message("matmul::<T>"), "`matmul::<T>` does not fit `matmul`, which is generic over T: usize");
        assert_eq!(message("saxpy::<1>"), "`saxpy::<1>` does not fit `saxpy`, which is generic over nothing");
        for name in ["matmul<16>", "matmul::<16", "matmul::<>", "matmul::<-1>", "matmul::<4294967296>"] {
            assert!(matches!(find(name), Err(Error::Malformed { .. })), "{name}");
        }
        assert!(message("matmul<16>").ends_with(" (is `matmul::<16>` meant?)"));
        let several = Named::find("matmul", &kernel_dsl::kernels()).unwrap().one().unwrap_err();
        assert_eq!(several.to_string(), "`matmul` has 2 instances; write which: matmul::<16>, matmul::<32>");
    }
}
