//! Reads the schema, against which the queries in `main.rs` are checked when they are compiled.

fn main() {
    let registered = cynic_codegen::register_schema("parterre").from_sdl_file("../../../schema/schema.graphql");
    match registered.and_then(|schema| schema.as_default()) {
        Ok(_) => {}
        Err(error) => panic!("the schema could not be read: {error}"),
    }
}
