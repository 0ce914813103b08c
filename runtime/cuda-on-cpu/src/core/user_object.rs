//! User objects: data of the program that exists as long as the graphs that refer to it.
//!
//! The program and graphs own references to a user object. With the last reference the object ends:
//! its handle becomes invalid, and the driver calls the program's function that destroys the data.

use super::error::{Error, Result};
use super::handle::{Handle, HandleTable, HandleType};
use cudarc::driver::sys::CUresult;
use runtime_simt::Lock;
use std::fmt;
use std::sync::{Arc, Weak};

/// A user object.
#[derive(Debug)]
pub struct UserObject {
    /// The object's handle.
    pub handle: Handle,
    destructor: Destructor,
    counts: Lock<ReferenceCounts>,
    /// The table that has the object.
    table: Weak<HandleTable<UserObject>>,
}

/// A function that destroys the data of a user object.
pub struct Destructor(Box<dyn Fn() + Send + Sync>);

impl Destructor {
    /// Wraps a function.
    pub fn new(function: impl Fn() + Send + Sync + 'static) -> Destructor {
        Destructor(Box::new(function))
    }
}

impl fmt::Debug for Destructor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Destructor")
    }
}

/// The numbers of references to a user object, by owner.
#[derive(Clone, Copy, Debug)]
struct ReferenceCounts {
    program: u64,
    graphs: u64,
}

/// References of one graph, or of one executable graph, to a user object. The last one that is
/// dropped ends the object.
#[derive(Debug)]
pub struct GraphReferences {
    object: Arc<UserObject>,
    count: u64,
}

impl HandleType for UserObject {
    const KIND: u8 = 0x51;
    const NAME: &'static str = "user object";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl UserObject {
    /// Creates an object in a table, with references of the program.
    pub fn create(table: &Arc<HandleTable<UserObject>>, destructor: Destructor, count: u32) -> Result<Arc<UserObject>> {
        let counts = Lock::new(ReferenceCounts { program: checked(count)?, graphs: 0 });
        let weak = Arc::downgrade(table);
        Ok(table.insert(|handle| UserObject { handle, destructor, counts, table: weak }))
    }

    /// Returns whether the program has references.
    pub fn is_of_program(&self) -> bool {
        self.counts.lock().program > 0
    }

    /// Adds references of the program.
    pub fn retain(&self, count: u32) -> Result {
        self.counts.lock().program += checked(count)?;
        Ok(())
    }

    /// Removes references of the program.
    pub fn release(&self, count: u32) -> Result {
        let count = checked(count)?;
        self.change(|counts| {
            let kept = counts.program.checked_sub(count);
            counts.program = kept.ok_or_else(|| Error::value("the program has fewer references to the object"))?;
            Ok(())
        })
    }

    /// Returns new references of a graph, or moves the references of the program to the graph.
    pub fn refer(self: &Arc<UserObject>, count: u32, moves: bool) -> Result<GraphReferences> {
        let count = checked(count)?;
        self.change(|counts| {
            if moves {
                let kept = counts.program.checked_sub(count);
                counts.program = kept.ok_or_else(|| Error::value("the program has fewer references to the object"))?;
            }
            counts.graphs += count;
            Ok(())
        })?;
        Ok(GraphReferences { object: self.clone(), count })
    }

    /// Changes the numbers of references, and ends the object if none is left.
    fn change(&self, change: impl FnOnce(&mut ReferenceCounts) -> Result) -> Result {
        let mut counts = self.counts.lock();
        change(&mut counts)?;
        let is_last = counts.program == 0 && counts.graphs == 0;
        drop(counts);
        // Only one thread removes the object from the table, and calls the function.
        if is_last && self.table.upgrade().is_some_and(|table| table.remove(self.handle).is_ok()) {
            (self.destructor.0)();
        }
        Ok(())
    }
}

/// Rejects counts outside the range of cuda.h.
fn checked(count: u32) -> Result<u64> {
    if count == 0 || count > i32::MAX as u32 {
        return Err(Error::value(format!("{count} references to a user object")));
    }
    Ok(count.into())
}

impl GraphReferences {
    /// Returns the handle of the object.
    pub fn object(&self) -> Handle {
        self.object.handle
    }

    /// Takes references out; fails if the graph has fewer.
    pub fn split(&mut self, count: u32) -> Result<GraphReferences> {
        let count = checked(count)?;
        let kept = self.count.checked_sub(count);
        self.count = kept.ok_or_else(|| Error::value("the graph has fewer references to the object"))?;
        Ok(GraphReferences { object: self.object.clone(), count })
    }

    /// Returns whether no reference is left.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds other references to the same object.
    pub fn join(&mut self, mut other: GraphReferences) {
        self.count += std::mem::take(&mut other.count);
    }
}

impl Clone for GraphReferences {
    fn clone(&self) -> GraphReferences {
        self.object.counts.lock().graphs += self.count;
        GraphReferences { object: self.object.clone(), count: self.count }
    }
}

impl Drop for GraphReferences {
    fn drop(&mut self) {
        let count = self.count;
        if count > 0 {
            // The change does not fail.
            let _ = self.object.change(|counts| {
                counts.graphs -= count;
                Ok(())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Returns an object, its table, and the number of calls of its destructor.
    fn object(references: u32) -> (Arc<HandleTable<UserObject>>, Arc<UserObject>, Arc<AtomicU32>) {
        let (table, calls) = (Arc::new(HandleTable::default()), Arc::new(AtomicU32::new(0)));
        let counter = calls.clone();
        let destructor = Destructor::new(move || _ = counter.fetch_add(1, Ordering::Relaxed));
        let made = UserObject::create(&table, destructor, references).unwrap();
        (table, made, calls)
    }

    #[test]
    fn the_last_reference_ends_the_object() {
        let (table, made, calls) = object(2);
        let graph = made.refer(1, true).unwrap();
        let executable = graph.clone();
        made.release(1).unwrap();
        drop(graph);
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        assert!(table.get(made.handle).is_ok());
        drop(executable);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(table.get(made.handle).is_err());
    }

    #[test]
    fn counts_are_checked() {
        let (_table, made, calls) = object(1);
        assert!(made.release(2).is_err() && made.release(0).is_err() && made.retain(u32::MAX).is_err());
        assert!(made.refer(2, true).is_err());
        let mut graph = made.refer(3, false).unwrap();
        assert!(graph.split(4).is_err());
        drop(graph.split(3).unwrap());
        assert!(graph.is_empty());
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        made.release(1).unwrap();
        drop(graph);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
