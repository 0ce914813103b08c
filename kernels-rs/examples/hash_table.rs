//! A hash table with open addressing: threads insert keys at the same time, and count each key.
//!
//! ```text
//! cargo run --release -p kernels-rs --example hash_table
//! ```
//!
//! The file shows a slot claimed by `compare_exchange`, and an assertion that a slot is free. The
//! interpreter and checked launches report a table that is full; unchecked launches run without
//! the assertion.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::collections::BTreeMap;
use std::error::Error;

/// Returns the first slot of a key among `slots`, a power of two.
#[device]
pub fn hash(key: u32, slots: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9) >> 7) as usize & (slots - 1)
}

/// Inserts each key, which is not 0, and counts it. Slots without a key hold 0.
#[kernel(block = 128, grid = keys.len().div_ceil(128))]
#[requires(table.len().is_power_of_two(), counts.len() == table.len())]
pub fn insert(keys: &[u32], table: &mut [u32], counts: &mut [u32]) {
    let i = grid::index();
    if i < keys.len() {
        let key = keys[i];
        let mut slot = hash(key, table.len());
        let mut probes = 0;
        loop {
            let found = table.compare_exchange(slot, 0, key);
            if found == 0 || found == key {
                break;
            }
            probes += 1;
            assert!(probes < table.len(), "no slot is free for key {key}");
            slot = (slot + 1) & (table.len() - 1);
        }
        counts.fetch_add(slot, 1);
    }
}

/// Looks up each key: found[i] ← its count, or 0.
#[kernel(block = 128, grid = keys.len().div_ceil(128), writes(found = once))]
#[requires(table.len().is_power_of_two(), counts.len() == table.len(), found.len() == keys.len())]
pub fn look_up(keys: &[u32], table: &[u32], counts: &[u32], found: &mut [u32]) {
    let i = grid::index();
    if i < keys.len() {
        let mut slot = hash(keys[i], table.len());
        while table[slot] != keys[i] && table[slot] != 0 {
            slot = (slot + 1) & (table.len() - 1);
        }
        found[i] = if table[slot] == 0 { 0 } else { counts[slot] };
    }
}

/// Returns the number of each key.
pub fn counted(keys: &[u32]) -> BTreeMap<u32, u32> {
    keys.iter().fold(BTreeMap::new(), |mut counts, key| {
        *counts.entry(*key).or_default() += 1;
        counts
    })
}

/// Counts keys, and looks up some that are there and some that are not.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let keys: Vec<u32> = (0..1000u32).map(|i| 1 + i * i % 311).collect();
    let asked: Vec<u32> = (1..400).collect();
    let (on_keys, on_asked) = (device.upload(&keys)?, device.upload(&asked)?);
    let (mut table, mut counts) = (device.zeros::<u32>(512)?, device.zeros::<u32>(512)?);
    let mut found = device.zeros::<u32>(asked.len())?;
    insert::launch(&device, &on_keys, &mut table, &mut counts)?;
    look_up::launch(&device, &on_asked, &table, &counts, &mut found)?;
    let expected = counted(&keys);
    let wanted: Vec<u32> = asked.iter().map(|key| expected.get(key).copied().unwrap_or(0)).collect();
    assert_eq!(found.download()?, wanted);
    println!("{} keys, {} of them different", keys.len(), expected.len());
    Ok(())
}
