//! Tests of the disk cache of modules that are compiled at run time.

use super::{alone, next};
use runtime::Device;
use runtime::store::Store;

fn works(store: &Store) {
    // No other handle of the device exists: a new context is created, without loaded modules.
    let device = Device::cuda(0).unwrap();
    device.set_store(Some(store.clone()));
    let (x, mut y) = (device.upload(&[1u32; 300]).unwrap(), device.zeros(300).unwrap());
    next::launch(&device, &x, &mut y).unwrap();
    assert_eq!(y.download().unwrap(), [2; 300]);
    y.copy_from(&[0; 300]).unwrap();
    // SAFETY: both buffers have the same number of elements.
    unsafe { next::launch_unchecked(&device, &x, &mut y).unwrap() };
    assert_eq!(y.download().unwrap(), [2; 300]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_keeps_ptx() {
    let _alone = alone();
    let folder = std::env::temp_dir().join(format!("kernel-dsl-kept-{}", std::process::id()));
    let store = Store::new(&folder, 64 << 20);
    works(&store);
    let usage = store.usage().unwrap();
    assert_eq!(usage.entries, 1, "the checked form, which is compiled at run time");
    let written = |path: &std::path::Path| std::fs::read(path).unwrap();
    let entries: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let before: Vec<_> = entries.iter().map(|path| written(path)).collect();
    // This run loads modules from the cache.
    works(&store);
    assert_eq!(store.usage().unwrap(), usage);
    // Damaged entries are compiled again.
    for (path, bytes) in entries.iter().zip(&before) {
        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        std::fs::write(path, damaged).unwrap();
    }
    works(&store);
    assert_eq!(store.usage().unwrap().entries, 1);
    assert!(entries.iter().zip(&before).all(|(path, bytes)| written(path).len() == bytes.len()));
    std::fs::remove_dir_all(&folder).unwrap();
}
