//! The driver of one process: its objects, and the operations of each call on them.
//!
//! `context` holds the current context of each thread, `module` the loaded modules, `memory`
//! allocations and copies, `stream` ordered work, `graph` captures.

mod context;
mod graph;
mod leaks;
mod library;
mod memory;
mod module;
mod stream;
mod texture;

pub use context::set_capture_mode;
pub use graph::UpdateMismatch;
pub use memory::Pool;
pub use module::parameters;

use super::context::Context;
use super::engine::Engine;
use super::error::{Error, Result};
use super::event::Event;
use super::findings::ProcessFindings;
use super::graph::{Capture, ExecutableGraph, Graph, Node};
use super::handle::{Handle, HandleTable};
use super::inject::Injection;
use super::library::{Library, LibraryEntry};
use super::link::Link;
use super::log::CallLog;
use super::memory::{Addresses, Supply};
use super::module::{Module, ModuleFunction};
use super::origin::CallCounter;
use super::settings::Settings;
use super::stream::Stream;
use super::texture::{Reference, SurfaceObject, TexelArray, TextureObject};
use super::user_object::UserObject;
use super::work::KernelLimits;
use context::Primary;
use cudarc::driver::sys::CUresult;
use runtime_ptx::Check;
use runtime_simt::Lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The driver of a process.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Driver {
    pub settings: Settings,
    pub log: Arc<CallLog>,
    pub findings: Arc<ProcessFindings>,
    pub engine: Arc<Engine>,
    /// The memory of each device.
    supplies: Vec<Arc<Supply>>,
    pub contexts: HandleTable<Context>,
    pub modules: HandleTable<Module>,
    pub libraries: HandleTable<Library>,
    pub kernels: HandleTable<LibraryEntry>,
    pub links: HandleTable<Link>,
    pub functions: HandleTable<ModuleFunction>,
    pub streams: HandleTable<Stream>,
    pub events: HandleTable<Event>,
    pub graphs: HandleTable<Graph>,
    pub nodes: HandleTable<Node>,
    pub executables: HandleTable<ExecutableGraph>,
    pub user_objects: Arc<HandleTable<UserObject>>,
    pub pools: HandleTable<Pool>,
    pub arrays: HandleTable<TexelArray>,
    pub textures: HandleTable<TextureObject>,
    pub surfaces: HandleTable<SurfaceObject>,
    pub references: HandleTable<Reference>,
    pub injection: Injection,
    /// The number of calls, counted for the leak check only.
    pub calls: CallCounter,
    /// The device's default pool. `current_pool` is the pool that `cuMemAllocAsync` allocates from.
    default_pool: Handle,
    current_pool: AtomicU64,
    /// The primary context of each device.
    primary: Vec<Lock<Primary>>,
    captures: Lock<Vec<Arc<Capture>>>,
    ids: AtomicU64,
}

impl Driver {
    /// Creates a driver without objects from these settings.
    pub fn new(settings: Settings, log: CallLog, findings: ProcessFindings) -> Driver {
        let log = Arc::new(log);
        let limits = KernelLimits { checks: settings.checks, fuel: settings.fuel, on_finding: settings.on_finding };
        let findings = Arc::new(findings);
        let pools = HandleTable::default();
        let injection = Injection::default();
        injection.set(settings.fail.clone());
        // One table for all devices: an address identifies its allocation on any device.
        let addresses: Arc<Lock<Addresses>> = Arc::default();
        let tracks = settings.checks.enables(Check::UninitializedBuffer);
        let each = 0..settings.visible;
        let default_pool = pools.insert(|handle| Pool::new(handle, None)).handle;
        Driver {
            engine: Arc::new(Engine::new(limits, log.clone(), findings.clone())),
            supplies: each.clone().map(|_| Arc::new(Supply::new(settings.memory, addresses.clone(), tracks))).collect(),
            contexts: HandleTable::default(),
            modules: HandleTable::default(),
            libraries: HandleTable::default(),
            kernels: HandleTable::default(),
            links: HandleTable::default(),
            functions: HandleTable::default(),
            streams: HandleTable::default(),
            events: HandleTable::default(),
            graphs: HandleTable::default(),
            nodes: HandleTable::default(),
            executables: HandleTable::default(),
            user_objects: Arc::default(),
            pools,
            arrays: HandleTable::default(),
            textures: HandleTable::default(),
            surfaces: HandleTable::default(),
            references: HandleTable::default(),
            injection,
            calls: CallCounter::default(),
            default_pool,
            current_pool: default_pool.0.into(),
            primary: each.map(|_| Lock::default()).collect(),
            captures: Lock::default(),
            ids: AtomicU64::new(1),
            settings,
            log,
            findings,
        }
    }

    /// Returns the index of a device that is visible to the process.
    pub fn device(&self, device: i32) -> Result<usize> {
        let seen = usize::try_from(device).ok().filter(|place| *place < self.settings.visible as usize);
        let why = || Error::new(CUresult::CUDA_ERROR_INVALID_DEVICE, format!("there is no device {device}"));
        seen.ok_or_else(why)
    }

    /// Returns the memory of the device at that index.
    pub fn supply(&self, device: usize) -> &Arc<Supply> {
        &self.supplies[device]
    }

    /// Returns the number of objects that the program must destroy: contexts, objects inside
    /// contexts, and allocations.
    pub fn objects(&self) -> usize {
        let contexts = self.contexts.all();
        let allocations: usize = contexts.iter().map(|context| context.memory().len()).sum();
        let handles = [
            self.modules.all().len(),
            self.streams.all().len(),
            self.events.all().len(),
            self.links.all().len(),
            self.textures.all().len(),
            self.surfaces.all().len(),
        ];
        let contexts = contexts.iter().filter(|context| !context.is_destroyed()).count();
        contexts + allocations + handles.iter().sum::<usize>() + self.executables.all().len()
    }

    fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}
