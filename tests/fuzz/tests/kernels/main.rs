//! Tests of the fuzzer and of the executors that it compares.

mod found;
mod planted;
mod sample;
mod wrong;
