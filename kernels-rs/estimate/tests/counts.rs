//! The interpreter's counts of a small kernel, compared with counts by hand.

use kernel_dsl::compiler::ptx::parse::parse;
use kernels_rs_estimate::profile::{Counter, LineCosts};
use runtime::ptx::{ArgumentBytes, BufferArgument, Launch, Options, ParameterValue, Program};

/// Each thread adds 1 to its element ten times. Lines 14 to 18 are the loop.
const PTX: &str = "\
.version 5.0
.target sm_61
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .u64 %rd<3>;
    .reg .u32 %r<4>;
    .reg .pred %p;
    ld.param.u64 %rd0, [x];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd2, %rd0, %rd1;
    mov.u32 %r1, 0;
$loop:
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 10;
    @%p bra $loop;
    ret;
}
";

/// The elements, aligned as memory of a device: sectors of the host's addresses are counted.
#[repr(align(128))]
struct Aligned([u8; 4 * 64]);

#[test]
fn lines_sectors_and_blocks_are_counted() {
    let module = parse(PTX).unwrap();
    let program = Program::decode(&module, "k").unwrap();
    let mut memory = Aligned([0; 4 * 64]);
    let launch = Launch {
        grid: [100, 1, 1],
        block: [64, 1, 1],
        dynamic_shared: 0,
        buffers: vec![BufferArgument { name: "x".to_string(), bytes: ArgumentBytes::Exclusive(&mut memory.0) }],
        parameters: vec![ParameterValue::Address { buffer: 0, offset: 0 }],
        options: Options::default(),
    };
    let mut counter = Counter::new(2, 1 << 14);
    program.observe(launch, [3, 50].into_iter(), &mut counter).unwrap();
    let counts = counter.finish();
    assert_eq!((counts.blocks, counts.warps), (2, 2));
    // Two blocks of two warps.
    assert_eq!(counts.lines[9].executed, 4);
    let load = counts.lines[15];
    // 128 bytes of a warp are 4 sectors; the cache holds them after the first iteration.
    let expected =
        LineCosts { executed: 40, requests: 40, sectors: 160, missed: 16, shared_cycles: 0, bytes: 40 * 128 };
    assert_eq!(load, expected);
    assert_eq!(counts.lines[17].missed, 160, "stores go to the L2 cache");
    assert_eq!((counts.sectors_of_blocks, counts.sectors_together), (16, 8));
    assert_eq!((counts.updated_of_blocks, counts.updated_together), (16, 8), "loaded, then stored");
    assert_eq!(memory.0[..4], [0; 4], "the sums decide no count");
}
