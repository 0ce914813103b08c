//! The classes of mutations.

/// Declares the classes, and the list of all of them.
macro_rules! classes {
    ($($class:ident)*) => {
        /// A class of mutations. Each is a mistake that rustc's resolver, type checker, borrow
        /// checker, privacy check, exhaustiveness check or denied lints may find.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)]
        pub enum MutationClass {
            $($class,)*
        }

        /// All classes.
        pub const MUTATIONS: &[MutationClass] = &[$(MutationClass::$class,)*];
    };
}

// A seed selects a class by its number: another order makes other mutants of the same seeds.
classes! {
    AnnotationAdded
    AnnotationRemoved
    ArgumentAdded
    ArgumentRemoved
    ArgumentsSwapped
    ArmRemoved
    ArmsSwapped
    BoundRemoved
    CallTraitChanged
    ClosureChanged
    DeriveRemoved
    ElseRemoved
    FieldRemoved
    FieldRenamed
    FieldRepeated
    FieldRetyped
    GenericRemoved
    GenericsChanged
    GuardChanged
    InitializerRemoved
    ItemRemoved
    ItemRepeated
    JumpChanged
    LiteralChanged
    LiteralOfOtherType
    MethodRenamed
    MutabilityChanged
    NameChanged
    OperatorChanged
    ParameterAdded
    ParameterRemoved
    ParameterRetyped
    PatternChanged
    PathChanged
    ReturnTypeChanged
    SemicolonChanged
    StatementInserted
    StatementRemoved
    StatementRepeated
    StatementsSwapped
    StructFieldRemoved
    StructFieldRepeated
    VariableInstead
    VisibilityRemoved
    Wrapped
}
