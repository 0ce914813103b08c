//! Serialized graphs: [`Graph::save`] writes them and [`Recording::load`] reads them.
//!
//! ```text
//! 0    8   "kgraph\r\n"
//! 8    2   version of the format, 1
//! 10   8   checksum of what follows: FNV-1a, 64 bits
//! 18       postcard of `SavedGraph`: kernels with their PTX, slots, launches        (all numbers little-endian)
//! ```
//!
//! # Security
//!
//! A file can make a device do only what safe Rust could do. The file names kernels and does not
//! contain them. Only the program's own kernels run, and only if the hash of their HIR and their
//! PTX text equal those in the file. Each launch is checked like a launch that the program records
//! itself. The arguments must lie in buffers that the program has lent to the recording, and meet
//! the kernel's contract. An unchecked launch has further conditions that no file can guarantee;
//! loading those is `unsafe`.
//!
//! The checksum detects damage, not malice. Bytes crafted to pass the checksum are rejected by the
//! checks above, or are another valid graph.

use super::lent::{GraphLaunch, RecordedArgument};
use super::slot::AnySlot;
use super::{Graph, Node, Recording};
use crate::cuda::ptx;
use crate::view::are_distinct;
use crate::{Device, Error, Result};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::compiler::hir::serial::checksum;
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use kernel_dsl::compiler::{ElementType, Scalar, driver};
use kernel_dsl::launcher::ArgumentShape;
use kernel_dsl::{Artifact, LaunchForm, kernels};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const MAGIC: [u8; 8] = *b"kgraph\r\n";
const VERSION: u16 = 1;
const HEADER: usize = 18;

/// The content of a file. Launches refer to kernels and slots by index.
#[derive(Serialize, Deserialize)]
struct SavedGraph {
    kernels: Vec<SavedKernel>,
    slots: Vec<SlotContent>,
    launches: Vec<SavedCall>,
}

/// An instance of a kernel, in one form.
#[derive(Serialize, Deserialize)]
struct SavedKernel {
    module: String,
    name: String,
    /// The hash of the kernel's HIR.
    hash: u64,
    constants: Vec<Constant>,
    checked: bool,
    ptx: String,
}

/// The required content of a slot.
#[derive(Serialize, Deserialize)]
struct SlotContent {
    element: String,
    bytes: u64,
}

/// A launch of a saved graph.
#[derive(Serialize, Deserialize)]
struct SavedCall {
    kernel: u32,
    block: Option<u64>,
    arguments: Vec<SavedArgument>,
}

/// An argument of a saved launch. `offset` is in bytes from the start of the slot.
#[derive(Serialize, Deserialize)]
enum SavedArgument {
    Scalar { ty: Scalar, bits: u64 },
    Memory { slot: u32, element: String, offset: u64, shape: Extents, mutable: bool },
}

/// The shape of an argument, in elements.
#[derive(Serialize, Deserialize)]
enum Extents {
    Slice(u64),
    View { extents: Vec<u64>, strides: Vec<u64>, strided: bool },
}

fn refused(why: impl Into<String>) -> Error {
    Error::SavedGraph { why: why.into() }
}

/// Returns the PTX that a launch runs.
fn text(device: &Device, kernel: &'static Artifact, constants: &[Constant], form: LaunchForm) -> Result<String> {
    let program = device.instance(kernel, constants)?;
    let name = program.instance_name();
    let failed = |source| Error::Compile { instance: name.clone(), source };
    match form {
        LaunchForm::Unchecked => Ok(ptx(kernel, kernel.target, &program, &name)?.into_owned()),
        LaunchForm::Checked => {
            let lowered = driver::lowered_monomorphic(&program, kernel.target).map_err(failed)?;
            CheckedKernel::of_instance(lowered, &program).ptx().map_err(failed)
        }
    }
}

impl Graph<'_> {
    /// Serializes the graph for [`Recording::load`]. The bytes have the launches with their current
    /// arguments and PTX, and the lengths of the buffers, but not their content.
    ///
    /// # Errors
    /// If a kernel does not compile.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut kernels: Vec<SavedKernel> = Vec::new();
        let mut known: Vec<&GraphLaunch> = Vec::new();
        let mut launches = Vec::new();
        for launch in &self.launches {
            let kernel = match known.iter().position(|other| other.is_like(launch)) {
                Some(kernel) => kernel,
                None => {
                    kernels.push(SavedKernel {
                        module: launch.kernel.module.into(),
                        name: launch.kernel.name.into(),
                        hash: checksum(launch.kernel.hir),
                        constants: launch.constants.clone(),
                        checked: launch.form == LaunchForm::Checked,
                        ptx: text(&self.device, launch.kernel, &launch.constants, launch.form)?,
                    });
                    known.push(launch);
                    known.len() - 1
                }
            };
            let arguments = launch.arguments.iter().map(SavedArgument::of).collect();
            launches.push(SavedCall { kernel: kernel as u32, block: launch.block.map(|n| n as u64), arguments });
        }
        let slots = self.slots.iter();
        let slots =
            slots.map(|lent| SlotContent { element: lent.element.to_string(), bytes: lent.bytes as u64 }).collect();
        let body = postcard::to_stdvec(&SavedGraph { kernels, slots, launches });
        let body = body.map_err(|why| refused(format!("it cannot be written: {why}")))?;
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(checksum(&body).to_le_bytes());
        bytes.extend(body);
        Ok(bytes)
    }
}

impl Recording<'_> {
    /// Records the launches of a saved graph, with `slots` in place of the saved slots, in the
    /// order in which those were lent.
    ///
    /// # Errors
    /// If the bytes are not a saved graph, or contain unchecked launches. If the program does not
    /// link a kernel, or the kernel has changed since. If slots differ in number, length or type
    /// from the saved ones. If arguments violate a kernel's contract. Launches recorded before the
    /// error stay.
    pub fn load(&self, bytes: &[u8], slots: &[AnySlot]) -> Result<Vec<Node>> {
        let saved = SavedGraph::read(bytes)?;
        if let Some(bare) = saved.kernels.iter().find(|kernel| !kernel.checked) {
            let why = "it has unchecked launches, whose conditions a file cannot guarantee: use `load_unchecked`";
            return Err(refused(format!("{}: {why}", bare.name)));
        }
        self.add_saved(&saved, slots)
    }

    /// Records the launches of a saved graph, including unchecked ones.
    ///
    /// # Safety
    /// At every replay, the kernels of unchecked launches must be free of out-of-bounds accesses
    /// and races for the arguments in the file. This holds, for example, if the file comes from
    /// [`Graph::save`] unchanged.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Recording::load), except that unchecked launches are
    /// accepted.
    pub unsafe fn load_unchecked(&self, bytes: &[u8], slots: &[AnySlot]) -> Result<Vec<Node>> {
        self.add_saved(&SavedGraph::read(bytes)?, slots)
    }

    fn add_saved(&self, saved: &SavedGraph, slots: &[AnySlot]) -> Result<Vec<Node>> {
        if slots.len() != saved.slots.len() {
            return Err(refused(format!("it has {} slots, given {}", saved.slots.len(), slots.len())));
        }
        let mut elements = BTreeMap::new();
        let mut places = Vec::new();
        for (i, (slot, expected)) in slots.iter().zip(&saved.slots).enumerate() {
            let (element, bytes) = self.slot(slot.0)?;
            if element.to_string() != expected.element || bytes as u64 != expected.bytes {
                return Err(refused(format!(
                    "slot {i} requires {} bytes of {}, given {bytes} bytes of {element}",
                    expected.bytes, expected.element
                )));
            }
            elements.insert(expected.element.as_str(), element);
            places.push((slot.0.slot, bytes as u64));
        }
        elements.extend(SCALARS.map(|scalar| (scalar.name(), ElementType::Scalar(scalar))));
        let kernels: Vec<_> = saved.kernels.iter().map(|kernel| kernel.find(self.device())).collect::<Result<_>>()?;
        let launches = saved.launches.iter().map(|call| {
            let kernel = kernels.get(call.kernel as usize);
            let (kernel, constants, form) =
                kernel.ok_or_else(|| refused("a launch names a kernel that the file does not contain"))?;
            let arguments = call.arguments.iter().map(|argument| argument.to_recorded(&places, &elements));
            self.push(GraphLaunch {
                kernel,
                constants: constants.clone(),
                block: call.block.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
                form: *form,
                arguments: arguments.collect::<Result<_>>()?,
            })
        });
        launches.collect()
    }
}

/// The scalar types of buffer elements.
const SCALARS: [Scalar; 13] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::U128,
    Scalar::F16,
    Scalar::Bf16,
    Scalar::F32,
    Scalar::F64,
];

impl SavedGraph {
    fn read(bytes: &[u8]) -> Result<SavedGraph> {
        let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(refused(format!("{} bytes are fewer than the header has", bytes.len())));
        };
        if header[..8] != MAGIC {
            return Err(refused("the bytes do not begin with the format's signature"));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != VERSION {
            return Err(refused(format!("its format is {version}; this program reads format {VERSION}")));
        }
        let written = u64::from_le_bytes(std::array::from_fn(|i| header[10 + i]));
        if written != checksum(body) {
            return Err(refused("it is damaged: its checksum is not that of its bytes"));
        }
        match postcard::take_from_bytes(body) {
            Ok((saved, [])) => Ok(saved),
            _ => Err(refused("the checksum is correct, but the content is not a saved graph")),
        }
    }
}

impl SavedKernel {
    /// Finds the same kernel in this program.
    fn find(&self, device: &Device) -> Result<(&'static Artifact, Vec<Constant>, LaunchForm)> {
        let of = |why: String| refused(format!("{}::{}: {why}", self.module, self.name));
        let kernel = kernels().into_iter().find(|kernel| kernel.module == self.module && kernel.name == self.name);
        let kernel = kernel.ok_or_else(|| of("this program has no such kernel".into()))?;
        if checksum(kernel.hir) != self.hash {
            return Err(of("it has changed since the graph was saved; record it again".into()));
        }
        // Code comes from the program, never from the file.
        let declared = kernel.instances.iter().find(|declared| declared.constants == self.constants);
        let plain = |constant: &Constant| !matches!(constant, Constant::Item(_));
        let constants = match declared {
            Some(declared) => declared.constants.to_vec(),
            None if self.constants.iter().all(plain) => self.constants.clone(),
            None => {
                let instance = kernel.instance_name(&self.constants);
                return Err(of(format!("the program does not declare {instance}, which is generic over an item")));
            }
        };
        let form = if self.checked { LaunchForm::Checked } else { LaunchForm::Unchecked };
        if text(device, kernel, &constants, form)? != self.ptx {
            return Err(of("this program compiles it to different PTX; record the graph again".into()));
        }
        Ok((kernel, constants, form))
    }
}

impl SavedArgument {
    fn of(given: &RecordedArgument) -> SavedArgument {
        match given {
            RecordedArgument::Scalar { ty, bits } => SavedArgument::Scalar { ty: *ty, bits: *bits },
            RecordedArgument::Memory { slot, element, offset, shape, mutable } => SavedArgument::Memory {
                slot: *slot as u32,
                element: element.to_string(),
                offset: *offset,
                shape: match shape {
                    ArgumentShape::Slice(len) => Extents::Slice(*len),
                    ArgumentShape::View { extents, strides } => {
                        Extents::View { extents: extents.to_vec(), strides: strides.to_vec(), strided: false }
                    }
                    ArgumentShape::Strided { extents, strides } => {
                        Extents::View { extents: extents.to_vec(), strides: strides.to_vec(), strided: true }
                    }
                },
                mutable: *mutable,
            },
        }
    }

    /// Converts the saved argument to one of a recording, and rejects an argument that exceeds its
    /// slot. `places` are the slots with their bytes.
    fn to_recorded(&self, places: &[(usize, u64)], elements: &BTreeMap<&str, ElementType>) -> Result<RecordedArgument> {
        let (slot, element, offset, shape, mutable) = match self {
            SavedArgument::Scalar { ty, bits } => return Ok(RecordedArgument::Scalar { ty: *ty, bits: *bits }),
            SavedArgument::Memory { slot, element, offset, shape, mutable } => {
                (*slot, element, *offset, shape, *mutable)
            }
        };
        let (place, room) = places
            .get(slot as usize)
            .ok_or_else(|| refused("an argument names a slot that the file does not contain"))?;
        let known = elements.get(element.as_str());
        let element =
            *known.ok_or_else(|| refused(format!("an argument has elements of {element}, which no slot has")))?;
        let shape = match shape {
            Extents::Slice(len) => ArgumentShape::Slice(*len),
            Extents::View { extents, strides, strided } => {
                // All numbers must fit in 32 bits, as on a device, so nothing overflows below.
                let narrow = |numbers: &[u64]| -> Option<Vec<usize>> {
                    numbers.iter().map(|n| u32::try_from(*n).ok().map(|n| n as usize)).collect()
                };
                let (Some(n), Some(s)) = (narrow(extents), narrow(strides)) else {
                    return Err(refused("an extent or stride has more than 32 bits"));
                };
                if n.len() != s.len() || mutable && !are_distinct(&n, &s) {
                    return Err(refused(format!(
                        "extents {n:?} and strides {s:?} do not form a view, or not a writable one"
                    )));
                }
                let (extents, strides) = (extents.as_slice().into(), strides.as_slice().into());
                if *strided {
                    ArgumentShape::Strided { extents, strides }
                } else {
                    ArgumentShape::View { extents, strides }
                }
            }
        };
        let bytes = shape.span().checked_mul(u64::from(element.bytes()));
        if bytes.and_then(|bytes| bytes.checked_add(offset)).is_none_or(|end| end > *room) {
            return Err(refused(format!("an argument ends beyond slot {slot}, of {room} bytes")));
        }
        Ok(RecordedArgument::Memory { slot: *place, element, offset, shape, mutable })
    }
}
