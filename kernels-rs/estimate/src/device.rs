//! Devices as data: a file for each device and for each architecture, with a source for every
//! number.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A number and its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcedNumber {
    /// The value, in the unit that the field's name states.
    pub value: f64,
    /// Source of the value.
    pub source: String,
}

/// A device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceParameters {
    /// Name as NVIDIA writes it.
    pub name: String,
    /// Name as the driver reports it, without a leading "NVIDIA".
    pub driver_name: String,
    /// File of the architecture.
    pub architecture: String,
    /// Number of multiprocessors.
    pub multiprocessors: SourcedNumber,
    /// Clock of the multiprocessors under load.
    pub clock_mhz: SourcedNumber,
    /// Peak bandwidth of the memory.
    pub dram_gb_per_s: SourcedNumber,
    /// Size of the L2 cache.
    pub l2_mib: SourcedNumber,
}

/// An architecture: what multiprocessors of several devices share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Target of the machine code, such as 61.
    pub sm: SourcedNumber,
    /// Schedulers of a multiprocessor, each with its units.
    pub schedulers: SourcedNumber,
    /// Largest number of resident warps of a multiprocessor.
    pub warps: SourcedNumber,
    /// Largest number of resident blocks of a multiprocessor.
    pub blocks: SourcedNumber,
    /// Registers of a multiprocessor.
    pub registers: SourcedNumber,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes: SourcedNumber,
    /// Bytes of the L1 cache, with and without shared memory.
    pub l1_bytes: SourcedNumber,
    /// Whether plain loads use the L1 cache: 1 or 0. Read-only loads always do.
    pub l1_holds_all_loads: SourcedNumber,
    /// Cycles between two instructions of a scheduler in one unit, by unit.
    pub intervals: BTreeMap<ExecutionUnit, SourcedNumber>,
    /// Latency of shared memory: cycles from issue to result, as for the other latencies.
    pub shared_latency: SourcedNumber,
    /// Latency of a hit in the L1 cache.
    pub l1_latency: SourcedNumber,
    /// Latency of a hit in the L2 cache.
    pub l2_latency: SourcedNumber,
    /// Latency of the memory.
    pub dram_latency: SourcedNumber,
    /// Latency of a special function, of a conversion, and of other instructions of variable
    /// latency.
    pub special_latency: SourcedNumber,
    /// Cycles from the last arrival at a barrier to the next instruction.
    pub barrier_latency: SourcedNumber,
    /// Sectors that a multiprocessor receives from the L2 cache per cycle.
    pub l2_sectors_per_cycle: SourcedNumber,
    /// Share of the memory's peak bandwidth that a copy reaches.
    pub dram_share: SourcedNumber,
    /// Cycles that the unit of loads and stores takes for each 128 bytes of global memory.
    pub l1_cycles_per_128_bytes: SourcedNumber,
    /// Cycles from the end of a block to the first instruction of the next.
    pub block_cycles: SourcedNumber,
    /// Time from one launch to the next if kernels are empty.
    pub launch_us: SourcedNumber,
}

/// Unit that executes instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionUnit {
    /// Multiply-add, addition and product of `f32`.
    Float,
    /// Addition and logic of integers, selection, copies.
    Integer,
    /// Shifts, minimum and maximum, bit fields.
    Shift,
    /// Comparisons to predicates.
    Compare,
    /// Integer products.
    Multiply,
    /// Dot products of bytes.
    Dot,
    /// Special functions, conversions, and bit counts.
    Special,
    /// Arithmetic on 16-bit floats.
    Half,
    /// Arithmetic on `f64`.
    Double,
    /// Loads, stores and exchanges.
    Memory,
    /// Jumps, barriers and waits.
    Control,
}

const DEVICES: [(&str, &str); 11] = [
    ("gtx1050ti", include_str!("../devices/gtx1050ti.json")),
    ("gtx1060", include_str!("../devices/gtx1060.json")),
    ("gtx1070", include_str!("../devices/gtx1070.json")),
    ("gtx1080", include_str!("../devices/gtx1080.json")),
    ("gtx1080ti", include_str!("../devices/gtx1080ti.json")),
    ("titanx-pascal", include_str!("../devices/titanx-pascal.json")),
    ("p4", include_str!("../devices/p4.json")),
    ("p40", include_str!("../devices/p40.json")),
    ("p100", include_str!("../devices/p100.json")),
    ("h100", include_str!("../devices/h100.json")),
    ("h200", include_str!("../devices/h200.json")),
];

const ARCHITECTURES: [(&str, &str); 3] = [
    ("pascal", include_str!("../devices/pascal.json")),
    ("pascal-gp100", include_str!("../devices/pascal-gp100.json")),
    ("hopper", include_str!("../devices/hopper.json")),
];

/// A device and its architecture.
#[derive(Clone, Debug)]
pub struct DeviceModel {
    /// Name on the command line.
    pub key: &'static str,
    /// The device.
    pub device: DeviceParameters,
    /// Architecture of the device.
    pub architecture: Architecture,
}

/// Error returned when a device is unknown, or its file is malformed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such device.
    #[error("unknown device `{given}`; the devices are {}", names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name given.
        given: String,
    },
    /// A data file is malformed.
    #[error("cannot parse the data of `{name}`: {source}")]
    Data {
        /// Name of the file.
        name: String,
        /// Reason.
        source: serde_json::Error,
    },
}

/// Returns the names of the devices.
pub fn names() -> impl Iterator<Item = &'static str> {
    DEVICES.iter().map(|(name, _)| *name)
}

impl DeviceModel {
    /// Returns the device of this name.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub fn named(given: &str) -> Result<DeviceModel, Error> {
        let unknown = || Error::Unknown { given: given.to_string() };
        let (key, text) = DEVICES.iter().find(|(name, _)| *name == given).ok_or_else(unknown)?;
        let malformed = |name: &str| {
            let name = name.to_string();
            move |source| Error::Data { name, source }
        };
        let device: DeviceParameters = serde_json::from_str(text).map_err(malformed(given))?;
        let found = ARCHITECTURES.iter().find(|(name, _)| *name == device.architecture);
        let (name, text) = found.ok_or_else(|| Error::Unknown { given: device.architecture.clone() })?;
        let architecture = serde_json::from_str(text).map_err(malformed(name))?;
        Ok(DeviceModel { key, device, architecture })
    }

    /// Returns the device whose driver name is `given`; `None` if there are no data for that
    /// device.
    ///
    /// # Errors
    /// Returns an error if a data file is malformed.
    pub fn of_driver_name(given: &str) -> Result<Option<DeviceModel>, Error> {
        let given = given.strip_prefix("NVIDIA ").unwrap_or(given);
        for name in names() {
            let model = DeviceModel::named(name)?;
            if model.device.driver_name == given {
                return Ok(Some(model));
            }
        }
        Ok(None)
    }

    /// Returns the operations on `f32` per second at the device's best.
    pub fn peak_flops(&self) -> f64 {
        let lanes = self.device.multiprocessors.value * self.architecture.schedulers.value * 32.0;
        2.0 * lanes * self.device.clock_mhz.value * 1e6
    }

    /// Returns the cycles between two instructions of a scheduler in `unit`.
    pub fn interval(&self, unit: ExecutionUnit) -> f64 {
        self.architecture.intervals.get(&unit).map_or(1.0, |number| number.value)
    }

    /// Returns the sectors per cycle that the memory delivers to each multiprocessor if all load.
    pub fn dram_sectors_per_cycle(&self) -> f64 {
        let DeviceParameters { multiprocessors, clock_mhz, dram_gb_per_s, .. } = &self.device;
        let bytes_per_second = dram_gb_per_s.value * 1e9 * self.architecture.dram_share.value;
        bytes_per_second / (clock_mhz.value * 1e6) / multiprocessors.value / 32.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_source() {
        for name in names() {
            let model = DeviceModel::named(name).unwrap();
            let DeviceParameters { multiprocessors, clock_mhz, dram_gb_per_s, l2_mib, .. } = &model.device;
            for number in [multiprocessors, clock_mhz, dram_gb_per_s, l2_mib] {
                assert!(number.value > 0.0 && !number.source.is_empty(), "{name}: {number:?}");
            }
            assert!(model.architecture.intervals.values().all(|n| n.value > 0.0 && !n.source.is_empty()), "{name}");
        }
        let of_driver = |name: &str| DeviceModel::of_driver_name(name).unwrap().map(|model| model.key);
        assert_eq!(of_driver("NVIDIA GeForce GTX 1080"), Some("gtx1080"));
        assert_eq!(of_driver("Tesla P4"), Some("p4"));
        assert_eq!(of_driver("NVIDIA GeForce GTX 1080 SUPER"), None);
        assert!(DeviceModel::named("gtx1081").unwrap_err().to_string().contains("gtx1080ti"));
    }

    /// Checks that the peak rates that NVIDIA publishes follow from the data.
    #[test]
    fn peak_rates_are_those_published() {
        for (name, tflops) in [("gtx1080", 8.87), ("gtx1080ti", 11.34), ("p4", 5.44), ("p40", 11.76), ("p100", 10.6)] {
            let peak = DeviceModel::named(name).unwrap().peak_flops() / 1e12;
            assert!((peak / tflops - 1.0).abs() < 0.01, "{name}: {peak}");
        }
    }
}
