#pragma once

// The whole core. Backends other than the host's, and everything for CUDA, have headers of their own.

#include <stowage/arena.hpp>
#include <stowage/backend/concept.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/buffer.hpp>
#include <stowage/condition.hpp>
#include <stowage/count.hpp>
#include <stowage/element.hpp>
#include <stowage/error.hpp>
#include <stowage/formula.hpp>
#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/shape.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/min_bytes.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/starts_at.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/tail.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero.hpp>
#include <stowage/traits/zero_at_construction.hpp>
#include <stowage/version.hpp>
