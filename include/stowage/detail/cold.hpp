#pragma once

/// On functions that run when a plan is made or an error is told. Inlining them into every field's formula
/// makes a translation unit with a large arena several times slower to compile and nothing faster that
/// matters.
#define STOWAGE_COLD [[gnu::cold, gnu::noinline]]
