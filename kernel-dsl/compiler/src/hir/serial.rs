//! HIR as bytes.
