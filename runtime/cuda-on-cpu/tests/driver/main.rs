//! Tests of the driver whose device is the CPU. Each test runs in a separate process.

#![cfg(target_os = "linux")]

mod backend;
mod c;
mod calls;
mod command_line;
mod common;
mod cudarc;
mod devices;
mod faults;
mod leaks;
mod python;
mod races;
mod raw;
mod refusals;
mod stand_ins;
mod together;
mod uninitialized;
