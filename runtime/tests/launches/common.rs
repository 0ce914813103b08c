//! saxpy, built by hand in each representation of the compiler: HIR, IR, PTX.

use kernel_dsl::compiler::hir::{self, Block, Expr, ExprKind, Intrinsic, Local, Program, Type, TypeId, serial};
use kernel_dsl::compiler::ir::build::Builder;
use kernel_dsl::compiler::ir::{self, AccessPlace, CachePolicy, Comparison, Dim, Op, Parameter, Role, Special};
use kernel_dsl::compiler::source::{KernelSource, Span};
use kernel_dsl::compiler::{Scalar, Target};
use kernel_dsl::{Artifact, Declared};
use std::sync::OnceLock;

/// The fault of a thread in [`ir`], if any.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)]
pub enum Mistake {
    None,
    /// Rounds twice.
    Unfused,
    /// Writes one element out of bounds.
    OutOfBounds,
}

const TEXT: &str = "pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() { y[i] = a.mul_add(x[i], y[i]); }
}";

fn source() -> KernelSource {
    let text = TEXT.lines().map(str::to_string).collect();
    KernelSource { name: "saxpy".into(), file: "tests/common.rs".into(), line: 1, text }
}

/// Builds `saxpy(a: f32, x: &[f32], y: &mut [f32])` with blocks of 256 threads. The grid is y.len()
/// / 256, rounded up, and x.len() == y.len() is required.
fn program() -> Program {
    let types = vec![
        Type::Scalar(Scalar::F32),
        Type::Slice { element: TypeId(0), mutable: false },
        Type::Slice { element: TypeId(0), mutable: true },
        Type::Scalar(Scalar::Usize),
        Type::Scalar(Scalar::Bool),
        Type::Unit,
    ];
    let float = TypeId(0);
    let (usize, bool) = (TypeId(3), TypeId(4));
    let expr = |kind, ty| Expr { kind, ty, span: Span::default() };
    let call = |intrinsic, arguments| expr(ExprKind::Intrinsic { intrinsic, arguments }, usize);
    let argument = |n: u32| expr(ExprKind::Local(hir::LocalId(n)), TypeId(n));
    let len = |n| call(Intrinsic::Extent(Some(0)), vec![argument(n)]);
    let number = |n| expr(ExprKind::Literal(n), usize);
    let equal = ExprKind::Compare(Comparison::Eq, len(1).into(), len(2).into());
    let local = |name: &str, ty| Local {
        name: name.into(),
        ty: TypeId(ty),
        mutable: false,
        constant: false,
        late: false,
        span: Span::default(),
    };
    let launch = hir::LaunchContract {
        block: vec![hir::BlockExtent::Computed(number(256))],
        grid: vec![call(Intrinsic::DivCeil, vec![len(2), number(256)])],
        requires: vec![hir::Requirement { condition: expr(equal, bool), text: "x.len() == y.len()".into() }],
        min_blocks: None,
        max_registers: None,
        contract: false,
        assertions: false,
        cooperative: false,
        target: Target::SM_61,
        instances: vec![hir::DeclaredInstance::default()],
        tolerances: vec![],
        outputs: vec![],
    };
    let i = || expr(ExprKind::Local(hir::LocalId(3)), usize);
    let element = |n| expr(ExprKind::Index { base: argument(n).into(), index: i().into() }, float);
    let fused =
        ExprKind::Intrinsic { intrinsic: Intrinsic::MulAdd, arguments: vec![argument(0), element(1), element(2)] };
    let assign = ExprKind::Assign { place: element(2).into(), operator: None, value: expr(fused, float).into() };
    let inside = ExprKind::If {
        condition: expr(ExprKind::Compare(Comparison::Lt, i().into(), len(2).into()), bool).into(),
        then: Block { statements: vec![hir::Statement::Expr(expr(assign, TypeId(5)))], value: None },
        otherwise: None,
    };
    let index = hir::Statement::Let {
        pattern: hir::Pattern::Local(hir::LocalId(3)),
        value: Some(call(Intrinsic::GridIndex, vec![])),
        span: Span::default(),
    };
    let body = Block { statements: vec![index, hir::Statement::Expr(expr(inside, TypeId(5)))], value: None };
    let function = hir::Function {
        name: "saxpy".into(),
        hash: 0,
        source: source(),
        generics: vec![],
        types,
        locals: vec![local("a", 0), local("x", 1), local("y", 2), local("i", 3)],
        parameters: 3,
        returns: TypeId(5),
        constant: None,
        allowances: vec![],
        private_to: 0,
        body,
    };
    Program { launch, functions: vec![function], items: Default::default() }
}

/// Returns the artifact that an expansion would hold.
pub fn artifact() -> &'static Artifact {
    static ARTIFACT: OnceLock<Artifact> = OnceLock::new();
    ARTIFACT.get_or_init(|| Artifact {
        name: "saxpy",
        module: "common",
        file: "tests/common.rs",
        line: 1,
        docs: "",
        target: Target::SM_61,
        hir: serial::encode_program(&program()).leak(),
        parameters: &[],
        instances: &[Declared { name: "saxpy", constants: &[], ptx: PTX }],
    })
}

/// Builds the kernel as lowering would.
pub fn ir(mistake: Mistake) -> ir::Kernel {
    let parameter = |name: &str, argument, role| Parameter { name: name.into(), argument, role };
    let address = |mutable| Role::Address { element: Scalar::F32.into(), mutable };
    let mut b = Builder::new(ir::Kernel {
        name: "saxpy".into(),
        rust_name: "saxpy".into(),
        instance: "saxpy".into(),
        target: Target::SM_61,
        block: ir::BlockExtents::fixed([256, 1, 1]),
        min_blocks: None,
        max_registers: None,
        parameters: vec![
            parameter("a", 0, Role::Value(Scalar::F32)),
            parameter("x", 1, address(false)),
            parameter("x_len", 1, Role::Extent(0)),
            parameter("y", 2, address(true)),
            parameter("y_len", 2, Role::Extent(0)),
        ],
        values: vec![],
        locals: vec![],
        shared: vec![],
        dynamic: Vec::new(),
        tables: Vec::new(),
        sources: vec![source()],
        declared: Default::default(),
        unrolled: kernel_dsl::compiler::ir::MAX_UNROLLED_INSTRUCTIONS,
        locations: vec![ir::SourceLocation {
            source: 0,
            span: Span { line: 2, column: 22, end_line: 2, end_column: 50 },
            caller: None,
        }],
        body: ir::Region::default(),
    });
    let a = b.scalar(Op::Parameter(0), Scalar::F32);
    let x = b.value(Op::Parameter(1), ir::Type::Global);
    let x_len = b.scalar(Op::Parameter(2), Scalar::Usize);
    let y = b.value(Op::Parameter(3), ir::Type::Global);
    let y_len = b.scalar(Op::Parameter(4), Scalar::Usize);
    let block = b.scalar(Op::Special(Special::Block(0)), Scalar::Usize);
    let thread = b.scalar(Op::Special(Special::Thread(0)), Scalar::Usize);
    let threads = b.index(256);
    let first = b.scalar(Op::Binary(ir::Binary::Mul, block, threads), Scalar::Usize);
    let i = b.scalar(Op::Binary(ir::Binary::Add, first, thread), Scalar::Usize);
    let inside = b.compare(Comparison::Lt, i, y_len);
    let place = |base, index, extent| AccessPlace::Global {
        base,
        dims: [Dim { index, extent, stride: None }].into_iter().collect(),
        within: None,
    };
    b.enter([]);
    let load = |b: &mut Builder, place, policy| {
        b.scalar(Op::Load { place, element: Scalar::F32, policy, guard: None }, Scalar::F32)
    };
    let xi = load(&mut b, place(x, i, x_len), CachePolicy::ReadOnly);
    let yi = load(&mut b, place(y, i, y_len), CachePolicy::Coherent);
    let sum = if mistake == Mistake::Unfused {
        let product = b.scalar(Op::Binary(ir::Binary::Mul, a, xi), Scalar::F32);
        b.scalar(Op::Binary(ir::Binary::Add, product, yi), Scalar::F32)
    } else {
        b.scalar(Op::MulAdd(a, xi, yi), Scalar::F32)
    };
    let one = b.index(u32::from(mistake == Mistake::OutOfBounds));
    let to = b.scalar(Op::Binary(ir::Binary::Add, i, one), Scalar::Usize);
    b.effect(Op::Store {
        place: place(y, to, y_len),
        element: Scalar::F32,
        values: [sum].into_iter().collect(),
        guard: None,
    });
    let then = b.leave();
    b.enter([]);
    let otherwise = b.leave();
    b.effect(Op::If { condition: inside, then, otherwise });
    b.finish()
}

/// The kernel as the PTX emitter would print it.
const PTX: &str = "\
.version 5.0
.target sm_61
.address_size 64

.visible .entry saxpy(
    .param .f32 a,
    .param .u64 x,
    .param .u32 x_len,
    .param .u64 y,
    .param .u32 y_len
)
.reqntid 256, 1, 1
{
    .reg .pred %p<1>;
    .reg .f32 %f<4>;
    .reg .u32 %r<4>;
    .reg .u64 %d<5>;

    ld.param.f32 %f0, [a];
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    ld.param.u32 %r0, [y_len];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r1, 256, %r2;
    setp.ge.u32 %p0, %r3, %r0;
    @%p0 ret;
    cvta.to.global.u64 %d0, %d0;
    cvta.to.global.u64 %d1, %d1;
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d3, %d0, %d2;
    add.u64 %d4, %d1, %d2;
    ld.global.nc.f32 %f1, [%d3];
    ld.global.f32 %f2, [%d4];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%d4], %f3;
    ret;
}
";
