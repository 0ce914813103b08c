//! The data of the page's pictures.

use super::model::LineIndex;
use crate::report::{AccessReport, ReportJson};
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::analyses::memory::{AccessKind, Cost};
use kernel_dsl::compiler::analyses::occupancy::{MultiprocessorLimits, Needs, Occupancy};
use kernel_dsl::compiler::ir::{Kernel, Role};
use runtime::interpreter::profile::{MemoryProfile, ProfiledAccess, RequestKind, RequestMemory};
use serde::Serialize;

/// An access, and the lanes of one of its requests.
#[derive(Serialize)]
pub(crate) struct AccessPicture {
    /// Index of the line of Rust.
    pub at: Option<usize>,
    /// Place in words: `gemm.rs:17:9`.
    pub place: String,
    /// `load ta`
    pub name: String,
    /// Kind of memory; `null` if neither the analysis nor a measurement determines it.
    pub memory: Option<&'static str>,
    /// Bytes that a lane accesses.
    pub bytes: u32,
    /// Computed number of ways of the worst bank conflict, or of sectors; `null` if not known.
    pub computed: Option<u32>,
    /// Mean cost of a request, as measured.
    pub measured: Option<f64>,
    /// Least possible cost of a request.
    pub least: Option<u32>,
    pub requests: u64,
    /// Whether lanes that access one word are served together.
    pub merged: bool,
    /// The shown request; `null` if the case did not execute the access.
    pub request: Option<PicturedRequest>,
}

/// Request of a warp.
#[derive(Serialize)]
pub(crate) struct PicturedRequest {
    pub block: [u32; 3],
    pub warp: u32,
    /// First byte that each lane accesses; `null` for an inactive lane.
    pub lanes: [Option<u64>; 32],
}

/// Returns the pictures of the accesses in the order of the report.
pub(super) fn accesses(report: &ReportJson, profile: Option<&MemoryProfile>, index: &LineIndex) -> Vec<AccessPicture> {
    let picture = |access: &AccessReport| {
        let (word, kind) = match access.kind {
            AccessKind::Load => ("load", RequestKind::Load),
            AccessKind::Store => ("store", RequestKind::Store),
            AccessKind::Atomic => ("atomic", RequestKind::Atomic),
        };
        let same = |a: &&ProfiledAccess| {
            (a.location, a.kind, a.bytes) == (access.location, kind, access.bytes)
                && (access.array.is_none() || a.array == access.array)
        };
        let executed = profile.into_iter().flat_map(|profile| profile.accesses.iter().filter(same));
        let fullest = executed.reduce(|a, b| if b.counts.fullest.outweighs(a.counts.fullest) { b } else { a });
        let (computed, least, computed_memory) = match access.cost {
            Some(Cost::Shared { ways }) => (Some(ways), Some(1), Some("shared")),
            Some(Cost::Global { sectors, least, .. }) => (Some(sectors), Some(least), Some("global")),
            Some(Cost::Constant { words }) => (Some(words), Some(1), Some("constant")),
            Some(Cost::Local { sectors, least }) => (Some(sectors), Some(least), Some("local")),
            None => (None, None, None),
        };
        let measured_memory = fullest.map(|accessed| match accessed.counts.memory {
            RequestMemory::Global => "global",
            RequestMemory::Shared => "shared",
            RequestMemory::Constant => "constant",
        });
        let file = access.place.file.rsplit('/').next().unwrap_or_default();
        AccessPicture {
            at: index.get(&access.place.file, access.place.line),
            place: format!("{file}:{}:{}", access.place.line, access.place.column),
            name: format!("{word} {}", access.array.as_deref().unwrap_or("?")),
            memory: measured_memory.or(computed_memory),
            bytes: access.bytes,
            computed,
            measured: access.measured.as_ref().map(|measured| measured.mean),
            least: least.or(fullest.map(|accessed| accessed.counts.fullest.least)),
            requests: access.measured.as_ref().map_or(0, |measured| measured.counts.requests),
            merged: access.kind != AccessKind::Atomic,
            request: fullest.map(|accessed| PicturedRequest {
                block: accessed.sample.block,
                warp: accessed.sample.warp,
                lanes: accessed.sample.offsets,
            }),
        }
    };
    report.accesses.iter().map(picture).collect()
}

/// Occupancy as a function of each resource, with the others as they are.
#[derive(Serialize)]
pub(crate) struct Occupancies {
    /// Maximum number of resident warps.
    pub of: u32,
    /// Resident warps of the instance.
    pub warps: u32,
    pub curves: Vec<Curve>,
}

/// Resident warps by the amount of one resource.
#[derive(Serialize)]
pub(crate) struct Curve {
    pub resource: &'static str,
    /// Amount that the instance needs; `null` if unknown.
    pub current: Option<u32>,
    /// Amounts and resident warps.
    pub points: Vec<(u32, u32)>,
}

impl Occupancies {
    pub(crate) fn of(target: Target, report: &ReportJson) -> Occupancies {
        let limits = MultiprocessorLimits::of(target);
        let registers = report.machine_code.as_ref().map(|code| code.resources.registers);
        let needs = Needs { threads: report.threads, registers, shared: report.shared_bytes };
        let curve = |resource, current, amounts: &mut dyn Iterator<Item = u32>, with: &dyn Fn(u32) -> Needs| Curve {
            resource,
            current,
            points: amounts.map(|amount| (amount, Occupancy::of(target, with(amount)).warps)).collect(),
        };
        let curves = vec![
            curve("threads of a block", Some(needs.threads), &mut (32..=1024).step_by(32), &|threads| Needs {
                threads,
                ..needs
            }),
            curve("registers of a thread", registers, &mut (16..=limits.registers_of_thread), &|n| Needs {
                registers: Some(n),
                ..needs
            }),
            curve("bytes of shared memory", Some(needs.shared), &mut (0..=limits.shared).step_by(512), &|shared| {
                Needs { shared, ..needs }
            }),
        ];
        Occupancies { of: limits.warps, warps: report.occupancy.occupancy.warps, curves }
    }
}

/// The blocks that stored to the elements of an output.
#[derive(Serialize)]
pub(crate) struct Tiles {
    pub array: String,
    /// Extents of the output, in elements; of more than two dimensions, the last two.
    pub rows: u64,
    pub columns: u64,
    /// Rows of cells. A cell shows the element at its center.
    pub cells: Vec<Vec<Option<u32>>>,
    /// Blocks in x, y, z. A block's number counts x fastest.
    pub grid: [u32; 3],
}

/// Maximum number of cells in a row or column of the picture.
const MAX_CELLS: u64 = 64;

/// Returns a picture of each buffer to which the case stores.
pub(super) fn tiles(kernel: &Kernel, profile: &MemoryProfile) -> Vec<Tiles> {
    let tiles = profile.stored.iter().filter_map(|stored| {
        let (parameter, bytes) = kernel.parameters.iter().find_map(|p| match p.role {
            Role::Address { element, .. } if p.name == stored.array => Some((p, u64::from(element.bytes()))),
            _ => None,
        })?;
        let value = |role: Role| {
            let at = kernel.parameters.iter().position(|p| p.argument == parameter.argument && p.role == role)?;
            profile.launched.parameters.get(at).copied().flatten()
        };
        let extents: Vec<u64> = (0..).map_while(|d| value(Role::Extent(d))).collect();
        let (rows, columns, pitch) = match extents[..] {
            [] => return None,
            [len] => {
                // A slice is shown in rows of about equal number and length.
                let columns = ((len as f64).sqrt().ceil() as u64).next_multiple_of(32).min(len.max(1));
                (len.div_ceil(columns), columns, columns)
            }
            [.., rows, columns] => {
                let pitch = value(Role::Stride(extents.len() as u32 - 2)).unwrap_or(columns);
                (rows, columns, pitch)
            }
        };
        if rows == 0 || columns == 0 {
            return None;
        }
        let (down, across) = (rows.min(MAX_CELLS), columns.min(MAX_CELLS));
        let cell = |i: u64, j: u64| {
            let (row, column) = ((2 * i + 1) * rows / (2 * down), (2 * j + 1) * columns / (2 * across));
            let word = (row * pitch + column) * bytes / 4;
            stored.blocks.get(word as usize).copied().flatten()
        };
        let cells = (0..down).map(|i| (0..across).map(|j| cell(i, j)).collect()).collect();
        Some(Tiles { array: stored.array.clone(), rows, columns, cells, grid: profile.launched.grid })
    });
    tiles.collect()
}
