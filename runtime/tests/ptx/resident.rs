//! Memory that outlives launches: an image's variables, and buffers at any address.

use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{Check, Checks, Grid, Options, Outcome, Resident, ResidentModule};

const PTX: &str = ".version 6.0
.target sm_61
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.const .align 4 .u32 step = 3;
.global .align 8 .u64 where = counter;
.visible .entry count()
{
    .reg .u32 %n;
    .reg .u64 %a;
    ld.const.u32 %n, [step];
    ld.global.u64 %a, [where];
    red.global.add.u32 [%a], %n;
    ret;
}
// to[0] = from[1], by addresses of any buffers
.visible .entry move(.param .u64 to, .param .u64 from)
{
    .reg .u32 %n;
    .reg .u64 %a;
    ld.param.u64 %a, [from];
    ld.global.u32 %n, [%a+4];
    ld.param.u64 %a, [to];
    st.global.u32 [%a], %n;
    ret;
}
.visible .entry spaces(.param .u64 to)
{
    .reg .pred %p;
    .reg .u32 %n;
    .reg .u64 %a;
    mov.u64 %a, step;
    cvta.const.u64 %a, %a;
    isspacep.const %p, %a;
    selp.u32 %n, 1, 0, %p;
    mov.u64 %a, counter;
    isspacep.global %p, %a;
    @%p add.u32 %n, %n, 2;
    isspacep.const %p, %a;
    @%p add.u32 %n, %n, 4;
    ld.param.u64 %a, [to];
    st.global.u32 [%a], %n;
    ret;
}
";

/// Returns the module's image with its variables at 2^40 and above, far apart.
fn image() -> ResidentModule {
    let mut next = 1 << 40;
    let place = |bytes: u64, align: u64| -> Result<u64, ()> {
        assert!(bytes == 4 && align == 4 || bytes == 8 && align == 8);
        next += 1 << 20;
        Ok(next)
    };
    ResidentModule::new(parse(PTX).unwrap(), place).unwrap()
}

/// Memory: blocks of bytes by ascending addresses.
type Space = Vec<(u64, Vec<u8>)>;

/// Returns the memory of an image's variables and other buffers.
fn space(image: &ResidentModule, buffers: &[(u64, usize)]) -> Space {
    let variables = image.variables().iter().map(|v| (v.address, v.bytes.clone()));
    let mut space: Space = variables.chain(buffers.iter().map(|(at, n)| (*at, vec![7; *n]))).collect();
    space.sort();
    space
}

fn run(image: &ResidentModule, entry: &str, space: &mut Space, parameters: &[u64], checks: Checks) -> Outcome {
    let constant = |at| image.variables().iter().any(|v| v.constant && v.address == at);
    let memory = space.iter_mut().map(|(address, bytes)| Resident {
        name: String::new(),
        address: *address,
        constant: constant(*address),
        bytes: ArgumentBytes::Exclusive(bytes),
        initialized: None,
        of_host: false,
    });
    let grid = Grid { grid: [2, 1, 1], block: [4, 1, 1], dynamic_shared: 0 };
    let parameters = parameters.iter().flat_map(|p| p.to_le_bytes()).collect();
    let options = Options { checks, ..Options::default() };
    image.program(entry).unwrap().run_on(memory.collect::<Vec<_>>(), grid, parameters, options).unwrap()
}

fn word(space: &Space, at: u64) -> u32 {
    let (_, bytes) = space.iter().find(|(start, _)| *start == at).unwrap();
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

const ALL: [Checks; 3] = [Checks::Values, Checks::Faults, Checks::All];

#[test]
fn variables_persist_between_launches() {
    let image = image();
    let names: Vec<&str> = image.variables().iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["counter", "step", "where"]);
    let counter = image.variables()[0].address;
    assert_eq!(image.variables()[2].bytes, counter.to_le_bytes());
    let mut space = space(&image, &[]);
    for (round, checks) in (1..).zip(ALL) {
        assert!(run(&image, "count", &mut space, &[], checks).report.findings.is_empty());
        assert_eq!(word(&space, counter), 5 + round * 8 * 3);
    }
}

#[test]
fn addresses_resolve_to_the_current_buffer() {
    let image = image();
    // Buffers close together, and on both sides of the variables.
    let buffers = [(1 << 20, 8), ((1 << 20) + 8, 8), (3 << 40, 8), ((1 << 48) - 8, 8)];
    for checks in ALL {
        for (to, _) in buffers {
            for (from, _) in buffers {
                let mut space = space(&image, &buffers);
                space.iter_mut().find(|(at, _)| *at == from).unwrap().1[4..8].copy_from_slice(&[1, 2, 3, 4]);
                let outcome = run(&image, "move", &mut space, &[to, from], checks);
                assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
                assert_eq!(word(&space, to), 0x0403_0201);
            }
        }
    }
}

#[test]
fn addresses_between_buffers_belong_to_none() {
    let image = image();
    let (at, bytes) = (3u64 << 40, 8);
    for (to, check) in [
        (0, Check::OutOfBounds),
        (64, Check::OutOfBounds),
        (at - 4, Check::OutOfBounds),
        (at + 8, Check::OutOfBounds),
        (at + 2, Check::Misaligned),
        (1 << 47, Check::OutOfBounds),
        ((1 << 48) - 4, Check::OutOfBounds),
        (1 << 52, Check::OutOfBounds),
        (u64::MAX - 3, Check::OutOfBounds),
        // The window of local memory.
        (1 << 48, Check::WrongSpace),
    ] {
        let mut space = space(&image, &[(at, bytes)]);
        let before = space.clone();
        for checks in ALL {
            let outcome = run(&image, "move", &mut space, &[to, at], checks);
            match checks {
                Checks::Values => assert!(outcome.report.findings.is_empty()),
                _ => assert_eq!(outcome.report.findings[0].check, check, "{to:#x}: {}", outcome.report),
            }
            assert_eq!(space, before, "{to:#x}");
        }
    }
    // A write to a constant, which is invalid.
    let step = image.variables()[1].address;
    let mut space = space(&image, &[(at, bytes)]);
    let outcome = run(&image, "move", &mut space, &[step, at], Checks::Faults);
    assert!(matches!(outcome.report.findings[0].check, Check::WrongSpace | Check::ReadOnlyWrite));
    assert_eq!(word(&space, step), 3);
}

#[test]
fn constants_know_their_space() {
    let image = image();
    let mut space = space(&image, &[(3 << 40, 4)]);
    run(&image, "spaces", &mut space, &[3 << 40], Checks::All);
    assert_eq!(word(&space, 3 << 40), 3);
}

#[test]
fn memory_out_of_order_is_rejected() {
    let image = image();
    let program = image.program("move").unwrap();
    let grid = Grid { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
    let refused = |places: [u64; 2], parameters: usize| {
        let (mut a, mut b) = ([0; 8], [0; 8]);
        let [first, second] = places;
        let memory = vec![
            Resident {
                name: String::new(),
                address: first,
                constant: false,
                bytes: ArgumentBytes::Exclusive(&mut a),
                initialized: None,
                of_host: false,
            },
            Resident {
                name: String::new(),
                address: second,
                constant: false,
                bytes: ArgumentBytes::Exclusive(&mut b),
                initialized: None,
                of_host: false,
            },
        ];
        program.run_on(memory, grid, vec![0; parameters], Options::default()).unwrap_err().to_string()
    };
    for places in [[16, 8], [8, 8], [8, 15], [8, (1 << 48) - 7], [8, u64::MAX - 4]] {
        assert_eq!(refused(places, 16), "the memory overlaps, or is not in order");
    }
    assert_eq!(refused([8, 16], 15), "`move` takes 16 bytes of parameters, and 15 are given");
}

/// Checks a wait for a change of memory: only the host could end it, and only in memory that the
/// host may access.
#[test]
fn a_wait_for_the_host_is_no_repetition() {
    let head = ".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry k(.param .u64 from) { .reg .u64 %a, %n;
        .reg .pred %p; ld.param.u64 %a, [from];";
    let polls = [
        "ld.volatile.global.u64 %n, [%a];",
        "atom.global.sys.cas.b64 %n, [%a], 0, 0;",
        // The result replaces the address.
        "mov.u64 %n, %a; atom.sys.global.cas.b64 %n, [%n], 0, 0;",
        // A weak load sees the host's store if a fence precedes it.
        "ld.global.u64 %n, [%a]; membar.sys;",
        "membar.gl; mov.u64 %n, %a; ld.global.u64 %n, [%n];",
    ];
    let cases = polls.map(|poll| [(poll, true, "the block reached its limit"), (poll, false, "an endless loop")]);
    // Without a fence, a weak load may be made once. The scope `.gpu` of atomic operations does not
    // include the host.
    let blind =
        ["ld.global.u64 %n, [%a];", "atom.global.cas.b64 %n, [%a], 0, 0;", "atom.global.gpu.or.b64 %n, [%a], 0;"];
    let blind = blind.map(|poll| (poll, true, "an endless loop"));
    for (poll, of_host, expected) in cases.into_iter().flatten().chain(blind) {
        let text = format!("{head} poll: {poll} setp.eq.u64 %p, %n, 0; @%p bra poll; ret; }}");
        let image = ResidentModule::new(parse(&text).unwrap(), |_, _| Ok::<u64, ()>(0)).unwrap();
        let program = image.program("k").unwrap();
        let mut word = [0; 8];
        let bytes = ArgumentBytes::Exclusive(&mut word);
        let part =
            Resident { name: String::new(), address: 1 << 40, constant: false, bytes, initialized: None, of_host };
        let grid = Grid { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
        let options = Options { fuel: 1 << 22, ..Options::default() };
        let outcome = program.run_on(vec![part], grid, (1u64 << 40).to_le_bytes().to_vec(), options).unwrap();
        let message = &outcome.report.findings[0].message;
        assert!(message.starts_with(expected), "{poll}: {message}");
    }
}
