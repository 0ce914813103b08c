//! Where kernels run: devices, buffers and checked launches; and the CPU interpreter that is the kernels' oracle.

pub mod interpreter;
