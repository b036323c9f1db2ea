#pragma once

/// On functions that run when a plan or an arena is made. Inlining them into every field's formula makes a
/// translation unit with a large arena several times slower to compile and nothing faster that matters.
#define STOWAGE_NOINLINE [[gnu::noinline]]

/// On functions that tell an error and do not return. Not on others: g++ takes all code around a call of a
/// cold function for cold, and optimises a loop behind the making of an arena for size.
#define STOWAGE_COLD [[gnu::cold, gnu::noinline]]
