//! The objects that the program has not destroyed.

use super::Driver;
use crate::core::graph::Operation;
use crate::core::handle::{Handle, HandleTable, HandleType};
use crate::core::leaks::{Leak, LeakCheck, LeakedObject, LiveObject};
use crate::core::memory::AllocationKind;
use crate::core::origin::CallOrigin;
use runtime_ptx::Heap;
use std::collections::HashSet;

/// Returns the objects of a table that satisfy `which`.
fn of_table<T: HandleType>(
    table: &HandleTable<T>,
    object: LeakedObject,
    which: impl Fn(&T) -> bool,
) -> impl Iterator<Item = LiveObject> {
    let all = table.all_with_origins().into_iter().filter(move |(made, _)| which(made));
    all.map(move |(_, origin)| LiveObject { object, bytes: None, origin })
}

impl Driver {
    /// Returns the live objects that the program must destroy, without the suppressed ones.
    ///
    /// An object that another one owns is not listed beside its owner. Neither is a primary
    /// context, nor a context that is current on a thread.
    pub fn leaks(&self) -> Vec<Leak> {
        let check = self.settings.leak_check;
        let mut live = Vec::new();
        if check >= LeakCheck::Full {
            live.extend(self.live_memory());
            live.extend(self.live_objects());
        }
        if check >= LeakCheck::Modules {
            let libraries = self.libraries.all();
            let of_libraries: HashSet<Handle> = libraries
                .iter()
                .flat_map(|library| library.modules.lock().iter().map(|(_, module)| *module).collect::<Vec<_>>())
                .collect();
            live.extend(of_table(&self.modules, LeakedObject::Module, |m| !of_libraries.contains(&m.handle)));
            live.extend(of_table(&self.libraries, LeakedObject::Library, |_| true));
        }
        let mut leaks = Leak::group(live);
        leaks.retain(|leak| !self.findings.is_suppressed(leak));
        leaks
    }

    /// Returns the live allocations.
    fn live_memory(&self) -> Vec<LiveObject> {
        let of_graph =
            |operation| if let Operation::Allocate { address, .. } = operation { Some(address) } else { None };
        let graphs: HashSet<u64> = self.nodes.all().iter().filter_map(|node| of_graph(node.operation())).collect();
        let mut live = Vec::new();
        for context in self.contexts.all() {
            let memory = context.memory();
            for (address, allocation) in memory.iter() {
                let object = match allocation.kind {
                    AllocationKind::Device => LeakedObject::DeviceMemory,
                    AllocationKind::Pool(_) => LeakedObject::PoolMemory,
                    AllocationKind::Managed => LeakedObject::ManagedMemory,
                    AllocationKind::Pinned(_) => LeakedObject::PinnedMemory,
                    AllocationKind::Registered(_) => LeakedObject::RegisteredMemory,
                    AllocationKind::Heap | AllocationKind::Array | AllocationKind::Variable { .. } => continue,
                };
                if !graphs.contains(&address) && !allocation.leaving {
                    let (bytes, origin) = (Some(allocation.block.len()), allocation.origin.clone());
                    live.push(LiveObject { object, bytes, origin });
                }
            }
            let of_heap = |(_, bytes)| LiveObject {
                object: LeakedObject::HeapMemory,
                bytes: Some(bytes),
                origin: CallOrigin::of_kernels("malloc"),
            };
            live.extend(memory.heap().into_iter().flat_map(Heap::allocations).map(of_heap));
        }
        for (array, origin) in self.arrays.all_with_origins() {
            let bytes = Some(array.texels.layer * u64::from(array.texels.size[2]));
            live.push(LiveObject { object: LeakedObject::Array, bytes, origin });
        }
        live
    }

    /// Returns the live objects that are neither memory nor code.
    fn live_objects(&self) -> Vec<LiveObject> {
        let of_child = |operation| if let Operation::Child(graph) = operation { Some(graph.handle) } else { None };
        let children: HashSet<Handle> = self.nodes.all().iter().filter_map(|node| of_child(node.operation())).collect();
        let default_pool = self.default_pool();
        let mut live = Vec::new();
        live.extend(of_table(&self.textures, LeakedObject::Texture, |_| true));
        live.extend(of_table(&self.surfaces, LeakedObject::Surface, |_| true));
        live.extend(of_table(&self.references, LeakedObject::TextureReference, |r| r.variable.is_none()));
        live.extend(of_table(&self.streams, LeakedObject::Stream, |_| true));
        live.extend(of_table(&self.events, LeakedObject::Event, |_| true));
        live.extend(of_table(&self.graphs, LeakedObject::Graph, |graph| !children.contains(&graph.handle)));
        live.extend(of_table(&self.executables, LeakedObject::ExecutableGraph, |_| true));
        live.extend(of_table(&self.user_objects, LeakedObject::UserObject, |object| object.is_of_program()));
        live.extend(of_table(&self.pools, LeakedObject::Pool, |pool| pool.handle != default_pool));
        live.extend(of_table(&self.links, LeakedObject::LinkState, |_| true));
        live.extend(of_table(&self.contexts, LeakedObject::Context, |c| !c.is_primary && !c.is_stacked()));
        live
    }
}
