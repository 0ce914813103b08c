//! Kernels from a string.

use crate::call::{self, OpenCall};
use crate::device::On;
use crate::error;
use crate::foreign::{ArrayForm, Foreign, Held};
use crate::fork::ForkLock;
use crate::scalar;
use kernel_dsl::compiler::hir::{
    Builtin, Constant, GenericKind, Instance, Monomorphic, Program, TraitBound, Type, monomorphic, serial,
};
use kernel_dsl::compiler::{Compilation, Errors, Scalar, Target};
use kernel_dsl::launcher::ArgumentShape;
use kernel_dsl::{Argument, Artifact, LaunchForm, Launcher};
use kernel_dsl_compiler::source_file;
use kernels_rs_command::examine::Examined;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;
use std::thread;

/// The texts that were compiled in this process.
pub static COMPILED: ForkLock<HashMap<CompilationKey, &'static CompiledText>> = ForkLock::new();

/// A compiled text.
pub struct CompiledText {
    key: CompilationKey,
    artifact: &'static Artifact,
    program: Program,
    pub instances: ForkLock<HashMap<Instance, Arc<Monomorphic>>>,
}

/// A text, its name in messages, the kernel, and the target.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CompilationKey {
    text: String,
    file: String,
    name: Option<String>,
    target: Option<Target>,
}

/// Compiles the text, once in a process.
///
/// A device identifies a kernel by the address of its artifact, which is therefore never freed.
fn compiled(py: Python<'_>, key: CompilationKey) -> PyResult<&'static CompiledText> {
    let compile = || {
        let mut all = COMPILED.lock();
        if let Some(known) = all.get(&key) {
            return Ok(*known);
        }
        // The front end keeps the positions of all text that a thread has read as long as the
        // thread lives.
        let compiled: &CompiledText = Box::leak(Box::new(on_large_stack(|| CompiledText::new(&key))?));
        all.insert(key, compiled);
        Ok(compiled)
    };
    py.detach(compile).map_err(|e| error::compile(py, &e))
}

/// The stack in bytes of a thread that compiles, as that of rustc's threads. The compiler visits
/// nested expressions recursively, and limits their depth.
const STACK_BYTES: usize = 256 << 20;

/// Runs `work` in a new thread with a large stack.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let worker = worker.expect("a thread with a stack of 256 MB");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl CompiledText {
    fn new(key: &CompilationKey) -> Result<CompiledText, Errors> {
        let CompilationKey { text, file, name, target } = key;
        let mut program = source_file::standalone(text, file, name.as_deref())?;
        program.launch.target = target.unwrap_or(program.launch.target);
        let kernel = &program.functions[0];
        let parameters: Vec<_> = kernel.generics.iter().map(|g| &*g.name.clone().leak()).collect();
        let artifact = Artifact {
            name: kernel.name.clone().leak(),
            module: "python",
            file: kernel.source.file.clone().leak(),
            line: kernel.source.line,
            docs: "",
            target: program.launch.target,
            hir: serial::encode_program(&program).leak(),
            parameters: parameters.leak(),
            instances: &[],
        };
        let (artifact, key) = (Box::leak(Box::new(artifact)), key.clone());
        let compiled = CompiledText { key, artifact, program, instances: ForkLock::new() };
        // Errors of the declared instances count as errors of the text.
        let declared = compiled.program.launch.instances.iter().map(|declared| declared.arguments.clone());
        let plain = compiled.generics().is_empty().then(Instance::default);
        for instance in declared.chain(plain).collect::<std::collections::HashSet<_>>() {
            Compilation::new(&*compiled.instance(&instance)?, compiled.artifact.target)?.optimized()?;
        }
        Ok(compiled)
    }

    fn generics(&self) -> &[kernel_dsl::compiler::hir::Generic] {
        &self.program.functions[0].generics
    }

    /// Returns the program of an instance, created on first use.
    fn instance(&self, instance: &Instance) -> Result<Arc<Monomorphic>, Errors> {
        let mut instances = self.instances.lock();
        if let Some(known) = instances.get(instance) {
            return Ok(known.clone());
        }
        let made = Arc::new(monomorphic(&self.program, instance)?);
        instances.insert(instance.clone(), made.clone());
        Ok(made)
    }
}

/// A kernel that was compiled from a string. Calling it launches it.
#[pyclass(frozen, module = "kernels_rs")]
pub struct Kernel {
    compiled: &'static CompiledText,
    /// Values of generic parameters, by index.
    fixed: Vec<Option<Constant>>,
    /// The name of a declared instance.
    label: Option<String>,
}

/// Compiles a kernel from the text of a Rust file: `#[kernel]` and `#[device]` items.
///
/// `name` selects one of several kernels. `file` is the name of the text in messages. `target` is
/// an architecture such as "sm_80"; by default the kernel's, which is sm_61 unless it states
/// another.
#[pyfunction]
#[pyo3(signature = (source, name = None, *, file = "kernel.rs", target = None))]
pub fn compile(
    py: Python<'_>,
    source: String,
    name: Option<String>,
    file: &str,
    target: Option<&str>,
) -> PyResult<Kernel> {
    let target: Option<Target> =
        target.map(str::parse).transpose().map_err(|e| PyValueError::new_err(format!("`target`: {e}")))?;
    let compiled = compiled(py, CompilationKey { text: source, file: file.to_string(), name, target })?;
    Ok(Kernel { compiled, fixed: vec![None; compiled.generics().len()], label: None })
}

#[pymethods]
impl Kernel {
    /// Returns the name of the function.
    #[getter]
    fn name(&self) -> &str {
        self.compiled.artifact.name
    }

    /// Returns the name of the function, as Python's functions do.
    #[getter]
    fn __name__(&self) -> &str {
        self.name()
    }

    /// Returns the kernel itself, which never changes.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Returns the kernel itself, which never changes.
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Returns what `pickle` calls to compile the kernel again, and its arguments.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let CompilationKey { text, file, name, target } = &self.compiled.key;
        let generics = PyDict::new(py);
        for (generic, value) in self.compiled.generics().iter().zip(&self.fixed) {
            match value {
                None => {}
                Some(Constant::Bool(value)) => generics.set_item(&generic.name, *value)?,
                Some(Constant::Integer(value)) => generics.set_item(&generic.name, *value)?,
                Some(Constant::Usize(value)) => generics.set_item(&generic.name, *value)?,
                Some(Constant::Scalar(scalar)) => generics.set_item(&generic.name, scalar::name_of(*scalar))?,
                Some(Constant::Item(item)) => generics.set_item(&generic.name, &*item.name)?,
            }
        }
        let target = target.map(|target| target.to_string());
        let again = py.import("kernels_rs._kernel")?.getattr("compiled_again")?;
        let arguments = (text, name, file, target, &self.label, generics).into_pyobject(py)?;
        Ok((again, arguments))
    }

    /// Returns the names of the parameters.
    #[getter]
    fn parameters(&self) -> Vec<&str> {
        self.parameter_names().collect()
    }

    /// Returns the names of the generic parameters.
    #[getter]
    fn generics(&self) -> Vec<&str> {
        self.compiled.generics().iter().map(|g| g.name.as_str()).collect()
    }

    /// Returns the declared instances, as reports name them.
    #[getter]
    fn instances(&self) -> Vec<String> {
        let program = &self.compiled.program;
        program.launch.instances.iter().map(|declared| program.instance_name(&declared.arguments)).collect()
    }

    /// Returns the kernel with values for generic parameters, or with a declared instance by name.
    #[pyo3(signature = (label = None, **generics))]
    fn instance(&self, label: Option<String>, generics: Option<&Bound<'_, PyDict>>) -> PyResult<Kernel> {
        let mut fixed = self.fixed.clone();
        for (name, value) in generics.into_iter().flatten() {
            let name: String = name.extract()?;
            let at = self.generic(&name).ok_or_else(|| self.no_such(&name))?;
            fixed[at] = Some(self.constant(at, &value)?);
        }
        Ok(Kernel { compiled: self.compiled, fixed, label: label.or_else(|| self.label.clone()) })
    }

    /// Returns the PTX of the instance.
    #[getter]
    fn ptx(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, |compilation| compilation.text())
    }

    /// Returns the IR of the instance as lowered, before any optimization.
    #[getter]
    fn ir(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, |compilation| Ok(compilation.lowered().to_string()))
    }

    /// Returns the IR of the instance after all optimizations.
    #[getter]
    fn optimized_ir(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, |compilation| Ok(compilation.optimized()?.to_string()))
    }

    /// Returns the text of `kernels report`: the limits of the instance's performance, and
    /// suggestions.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let examined = self.examined(py)?;
        examined.report().map_err(|e| error::Error::new_err(e.to_string()))
    }

    /// Returns the page of `kernels inspect` as an HTML document.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.examined(py)?.page())
    }

    fn __repr__(&self) -> String {
        format!("<kernel {}({})>", self.name(), self.parameters().join(", "))
    }

    /// Launches the kernel with every access checked, and waits for it.
    ///
    /// Arguments are numbers and arrays, by position or by name; generic parameters are given by
    /// name, and element types follow from the arrays. A parameter named as an option hides it.
    /// `block` is the block's extent where the kernel leaves it to the launch. With a `stream` the
    /// call returns once it is submitted.
    /// `unchecked` runs the kernel's own PTX on a GPU, without access checks.
    #[pyo3(signature = (*arguments, block = None, stream = None, unchecked = None, **named))]
    fn __call__(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        block: Option<&Bound<'_, PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
        unchecked: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        // A parameter of the name of an option is given by that name, as all others are.
        let options = [("block", block), ("stream", stream), ("unchecked", unchecked)];
        let is_parameter =
            |name: &str| self.generic(name).is_some() || self.parameter_names().any(|known| known == name);
        let (parameters, options): (Vec<_>, Vec<_>) =
            options.into_iter().partition(|(name, value)| value.is_some() && is_parameter(name));
        let option = |name: &str| options.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value);
        let block = option("block").map(|block| block.extract::<usize>()).transpose()?;
        let stream = option("stream");
        let unchecked = option("unchecked").is_some_and(|value| value.is_truthy().unwrap_or(false));
        let mut named = named.cloned();
        for (name, value) in parameters {
            // Python makes a new dictionary for each call with names.
            named.get_or_insert_with(|| PyDict::new(py)).set_item(name, value)?;
        }
        let (values, fixed) = self.bind(arguments, named.as_ref())?;
        let names: Vec<_> = self.parameter_names().collect();
        let mut given = Vec::with_capacity(values.len());
        for ((name, value), takes_array) in names.iter().zip(values).zip(self.takes_arrays()) {
            // A number of NumPy has the protocols of an array.
            given.push(match if takes_array { Foreign::of(&value, name)? } else { None } {
                Some(array) => GivenArgument::Array(array),
                None => GivenArgument::Value(value),
            });
        }
        let instance = self.resolve(fixed, &given)?;
        let program = self.compiled.instance(&instance).map_err(|e| error::compile(py, &e))?;
        let arrays = names.iter().zip(&given).filter_map(|(name, given)| match given {
            GivenArgument::Array(array) => Some((*name, array)),
            GivenArgument::Value(_) => None,
        });
        let OpenCall { opened, stream, in_order } = call::open(py, arrays, stream)?;
        let (held, prepared) = prepare(&program, given, &opened, in_order)?;

        let form = if unchecked { LaunchForm::Unchecked } else { LaunchForm::Checked };
        let submit = |on: &runtime::Stream| {
            // SAFETY: each shape is the one made with its memory, and memory is mutable only if its
            // array is writable.
            let arguments: Vec<_> = prepared.iter().map(|p| unsafe { p.argument(&held) }).collect();
            // SAFETY: the caller of the unchecked form states that the kernel has no fault.
            unsafe { on.submit(form, self.compiled.artifact, &instance.0, block, &arguments) }
        };
        let launched = match &stream {
            None => opened.interruptible(py, || opened.complete(submit)),
            Some(On::Stream(stream)) => {
                let stream = stream.get();
                opened.interruptible(py, || {
                    stream.follow(&opened)?;
                    submit(&stream.stream)
                })
            }
            Some(On::Handle(handle)) if in_order && unchecked => opened.interruptible(py, || {
                // SAFETY: as in `submit`. The caller passes a live stream of the arrays' device, in
                // whose order their owners use the memory.
                unsafe {
                    let arguments: Vec<_> = prepared.iter().map(|p| p.argument(&held)).collect();
                    let handle = ptr::without_provenance_mut(*handle);
                    opened.stream.submit_to(handle, self.compiled.artifact, &instance.0, block, &arguments)
                }
            }),
            // SAFETY: the caller passes a live stream of the arrays' device.
            Some(On::Handle(handle)) => opened.interruptible(py, || unsafe { opened.ordered(*handle, submit) }),
        };
        match stream {
            Some(On::Stream(stream)) => stream.get().hold(held),
            _ if in_order && !unchecked => py.detach(|| opened.drop_later(Box::new(held))),
            _ => drop(held),
        }
        launched
    }
}

/// A value that was passed for a parameter.
enum GivenArgument<'py> {
    Array(Foreign),
    Value(Bound<'py, PyAny>),
}

/// An argument of a launch.
enum PreparedArgument {
    Scalar {
        ty: Scalar,
        bits: u64,
    },
    /// Memory, by index into what the call holds.
    Memory {
        at: usize,
        scalar: Scalar,
        shape: ArgumentShape,
        mutable: bool,
    },
}

impl PreparedArgument {
    /// Returns the prepared value as an argument of a launch.
    ///
    /// # Safety
    /// `held` is what was prepared with it.
    unsafe fn argument<'h>(&self, held: &'h [Held]) -> Argument<'h> {
        match self {
            PreparedArgument::Scalar { ty, bits } => Argument::Scalar { ty: *ty, bits: *bits },
            PreparedArgument::Memory { at, scalar, shape, mutable } => {
                // SAFETY: by the caller's promise.
                unsafe { held[*at].argument(*scalar, shape.clone(), *mutable) }
            }
        }
    }
}

/// Converts the given values to the arguments of a launch.
fn prepare(
    program: &Monomorphic,
    given: Vec<GivenArgument<'_>>,
    opened: &crate::device::Opened,
    in_order: bool,
) -> PyResult<(Vec<Held>, Vec<PreparedArgument>)> {
    let (mut held, mut prepared) = (Vec::new(), Vec::new());
    let types = &program.kernel().types;
    let arguments = program.arguments();
    for (parameter, given) in given.into_iter().enumerate() {
        let wanted: Vec<_> = arguments.iter().filter(|a| a.parameter as usize == parameter).collect();
        let (mut values, mut kind) = (Vec::new(), String::new());
        match given {
            GivenArgument::Array(array) => values.push(GivenArgument::Array(array)),
            GivenArgument::Value(value) => {
                kind = type_name(&value);
                flatten(value, &mut values)?;
            }
        }
        if values.len() != wanted.len() {
            let name = &program.kernel().locals[parameter].name;
            let takes_array = |ty: &Type| matches!(ty, Type::Slice { .. } | Type::View { .. });
            if wanted.len() == 1 && takes_array(&types[wanted[0].ty.0 as usize]) {
                return Err(PyTypeError::new_err(format!("argument `{name}`: expected an array, given {kind}")));
            }
            return Err(PyTypeError::new_err(format!(
                "argument `{name}`: expected {} values, given {}",
                wanted.len(),
                values.len()
            )));
        }
        for (argument, value) in wanted.into_iter().zip(values) {
            let name = &argument.name;
            let (form, writes) = match &types[argument.ty.0 as usize] {
                Type::Scalar(ty) => {
                    let GivenArgument::Value(value) = value else {
                        return Err(PyTypeError::new_err(format!("argument `{name}`: expected {ty}, given an array")));
                    };
                    prepared.push(PreparedArgument::Scalar { ty: *ty, bits: scalar::number(&value, *ty, name)? });
                    continue;
                }
                Type::Slice { mutable, .. } => (ArrayForm::Slice, *mutable),
                Type::View { strided: true, mutable, .. } => (ArrayForm::Strided, *mutable),
                Type::View { mutable, .. } => (ArrayForm::View, *mutable),
                other => {
                    return Err(PyTypeError::new_err(format!(
                        "argument `{name}`: {other:?} cannot be passed from Python"
                    )));
                }
            };
            let array = match value {
                GivenArgument::Array(array) => array,
                GivenArgument::Value(value) => Foreign::of(&value, name)?.ok_or_else(|| {
                    PyTypeError::new_err(format!("argument `{name}`: expected an array, given {}", type_name(&value)))
                })?,
            };
            let (scalar, mutable) = (array.scalar, writes && array.writable);
            if writes && !array.writable {
                return Err(PyValueError::new_err(format!(
                    "argument `{name}`: the kernel writes it, and it is read-only"
                )));
            }
            let (memory, shape) = array.memory(opened, form, name, in_order)?;
            prepared.push(PreparedArgument::Memory { at: held.len(), scalar, shape, mutable });
            held.push(memory);
        }
    }
    Ok((held, prepared))
}

/// Returns the name of an object's type.
fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "an object".to_string(), |name| name.to_string())
}

/// Appends the numbers of a value to `all`; tuples and lists are flattened in order.
fn flatten<'py>(value: Bound<'py, PyAny>, all: &mut Vec<GivenArgument<'py>>) -> PyResult<()> {
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        return value.try_iter()?.try_for_each(|item| flatten(item?, all));
    }
    all.push(GivenArgument::Value(value));
    Ok(())
}

impl Kernel {
    fn parameter_names(&self) -> impl Iterator<Item = &str> {
        let kernel = &self.compiled.program.functions[0];
        kernel.locals.iter().take(kernel.parameters as usize).map(|local| local.name.as_str())
    }

    /// Returns for each parameter whether it is a slice or view.
    fn takes_arrays(&self) -> impl Iterator<Item = bool> {
        let kernel = &self.compiled.program.functions[0];
        let parameters = kernel.locals.iter().take(kernel.parameters as usize);
        parameters.map(|local| matches!(kernel.types[local.ty.0 as usize], Type::Slice { .. } | Type::View { .. }))
    }

    fn generic(&self, name: &str) -> Option<usize> {
        self.compiled.generics().iter().position(|g| g.name == name)
    }

    fn no_such(&self, name: &str) -> PyErr {
        let all = |names: Vec<&str>| if names.is_empty() { "none".to_string() } else { names.join(", ") };
        PyTypeError::new_err(format!(
            "{} has no parameter `{name}`; its parameters are {}, its generic parameters {}",
            self.name(),
            all(self.parameters()),
            all(self.generics())
        ))
    }

    /// Binds positional and named arguments to the parameters, and named values to the generic
    /// parameters.
    #[expect(clippy::type_complexity, reason = "the two lists are bound together")]
    fn bind<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Vec<Bound<'py, PyAny>>, Vec<Option<Constant>>)> {
        let names: Vec<_> = self.parameter_names().collect();
        let count = |given| {
            PyTypeError::new_err(format!(
                "{} takes {} arguments ({}), given {given}",
                self.name(),
                names.len(),
                names.join(", ")
            ))
        };
        if arguments.len() > names.len() {
            return Err(count(arguments.len()));
        }
        let mut values: Vec<Option<Bound<'py, PyAny>>> = arguments.iter().map(Some).collect();
        values.resize(names.len(), None);
        let mut fixed = self.fixed.clone();
        for (name, value) in named.into_iter().flatten() {
            let name: String = name.extract()?;
            if let Some(at) = names.iter().position(|known| *known == name) {
                if values[at].replace(value).is_some() {
                    return Err(PyTypeError::new_err(format!("argument `{name}` is given twice")));
                }
            } else {
                let at = self.generic(&name).ok_or_else(|| self.no_such(&name))?;
                fixed[at] = Some(self.constant(at, &value)?);
            }
        }
        let bound = values.iter().flatten().count();
        let values = values.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| count(bound))?;
        Ok((values, fixed))
    }

    /// Converts a value for generic parameter number `at`.
    fn constant(&self, at: usize, value: &Bound<'_, PyAny>) -> PyResult<Constant> {
        let generic = &self.compiled.generics()[at];
        let wrong =
            |what: String| PyTypeError::new_err(format!("generic parameter `{}`: expected {what}", generic.name));
        match &generic.kind {
            GenericKind::Constant(Scalar::Bool) => {
                value.extract().map(Constant::Bool).map_err(|_| wrong("a bool".to_string()))
            }
            GenericKind::Constant(scalar) if *scalar != Scalar::Usize => {
                value.extract().map(Constant::Integer).map_err(|_| wrong(format!("a number of the type {scalar}")))
            }
            GenericKind::Constant(_) => {
                value.extract().map(Constant::Usize).map_err(|_| wrong("a number below 2**32".to_string()))
            }
            GenericKind::Type(_) => {
                let mut declared = self.compiled.program.launch.instances.iter().flat_map(|i| &i.arguments.0);
                let name = value.extract::<String>().ok();
                let named = |c: &&Constant| matches!(c, Constant::Item(item) if Some(&*item.name) == name.as_deref());
                match declared.find(named) {
                    Some(item) => Ok(item.clone()),
                    None => scalar::dtype(value).map(Constant::Scalar).map_err(|_| {
                        wrong(
                            "an element type such as 'float32', or the name of a type of a declared instance"
                                .to_string(),
                        )
                    }),
                }
            }
        }
    }

    /// Returns the instance with these generic arguments. Missing arguments are inferred from the
    /// arrays' element types, and then from the declared instances, if exactly one agrees.
    fn resolve(&self, mut fixed: Vec<Option<Constant>>, given: &[GivenArgument<'_>]) -> PyResult<Instance> {
        let kernel = &self.compiled.program.functions[0];
        for (local, given) in kernel.locals.iter().zip(given) {
            let (Type::Slice { element, .. } | Type::View { element, .. }) = kernel.types[local.ty.0 as usize] else {
                continue;
            };
            if let (Type::Parameter(at), GivenArgument::Array(array)) = (&kernel.types[element.0 as usize], given)
                && let Some(slot) = fixed.get_mut(*at as usize)
            {
                slot.get_or_insert(Constant::Scalar(array.scalar));
            }
        }
        for (generic, value) in self.compiled.generics().iter().zip(&fixed) {
            let (GenericKind::Type(bounds), Some(Constant::Scalar(scalar))) = (&generic.kind, value) else { continue };
            let bound = |builtin| bounds.contains(&TraitBound::Builtin(builtin));
            let wanted = match scalar {
                scalar if bound(Builtin::Float) && !scalar::is_float(*scalar) => "Float",
                scalar if bound(Builtin::Integer) && !scalar.is_integer() => "Integer",
                _ => continue,
            };
            return Err(PyTypeError::new_err(format!(
                "{}: the elements of `{}` are {}, which is no type of the bound `{wanted}`",
                self.name(),
                generic.name,
                scalar::name_of(*scalar)
            )));
        }
        let program = &self.compiled.program;
        let agrees = |instance: &Instance| {
            fixed.iter().zip(&instance.0).all(|(fixed, value)| fixed.as_ref().is_none_or(|fixed| fixed == value))
        };
        let of_label = |name: &Option<String>| self.label.is_none() || name == &self.label;
        let fitting: Vec<_> = program
            .launch
            .instances
            .iter()
            .filter(|declared| of_label(&declared.name) && agrees(&declared.arguments))
            .map(|declared| &declared.arguments)
            .collect();
        if let Some(label) = self.label.as_ref().filter(|_| fitting.is_empty()) {
            return Err(PyValueError::new_err(format!(
                "{} declares no instance `{label}` that agrees with the arguments; its instances are {}",
                self.name(),
                self.instances().join(", ")
            )));
        }
        if let [one] = fitting[..] {
            return Ok(one.clone());
        }
        let missing: Vec<_> =
            fixed.iter().zip(self.generics()).filter(|(fixed, _)| fixed.is_none()).map(|(_, name)| name).collect();
        if !missing.is_empty() {
            return Err(PyValueError::new_err(format!(
                "{} is generic: give {} by keyword; its declared instances are {}",
                self.name(),
                missing.join(", "),
                if self.instances().is_empty() { "none".to_string() } else { self.instances().join(", ") }
            )));
        }
        Ok(Instance(fixed.into_iter().flatten().collect()))
    }

    /// Returns a text of the instance that the fixed arguments select.
    fn text(
        &self,
        py: Python<'_>,
        of: impl FnOnce(&Compilation<'_>) -> Result<String, Errors> + Send,
    ) -> PyResult<String> {
        let instance = self.resolve(self.fixed.clone(), &[])?;
        let made = py.detach(|| {
            on_large_stack(|| {
                let program = self.compiled.instance(&instance)?;
                of(&Compilation::new(&program, self.compiled.artifact.target)?)
            })
        });
        made.map_err(|e| error::compile(py, &e))
    }

    fn examined(&self, py: Python<'_>) -> PyResult<Examined> {
        let instance = self.resolve(self.fixed.clone(), &[])?;
        let CompiledText { artifact, program, .. } = self.compiled;
        let examined = Examined::new(artifact, program, instance, artifact.target);
        examined.map_err(|e| {
            let raised = error::CompileError::new_err(e.to_string());
            // The text remains without the attribute.
            let _ = raised.value(py).setattr("errors", PyList::empty(py));
            raised
        })
    }
}
