//! Tests of IR, its text and verifier, and the passes.

mod equal;
mod errors;
mod evaluator;
mod examples;
mod filetests;
mod generator;
mod identities;
mod indices;
mod lanes;
mod text;
mod uniform;
