//! Tests of devices: graphs, streams and occupancy.

mod graphs;
mod occupancy;
mod streams;
