//! Tests of pages, documentation and names: they state what the code does.

mod documented;
mod import_circles;
mod public_surface;
mod readme;
mod subset;
mod type_names;
