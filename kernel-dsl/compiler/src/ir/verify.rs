//! Invariants of the IR.
