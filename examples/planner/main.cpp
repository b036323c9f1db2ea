// The stowage program: what a model's forward arena takes, and whether its passes keep their promises.

#include "program.hpp"

#include <stowage/llm/levers.hpp>

#include <cstddef>
#include <iostream>
#include <span>

int main(int argc, char** argv) {
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  return planner::run_program(arguments.subspan(arguments.empty() ? 0 : 1),
                              stowage::llm::levers_from_environment(), std::cout, std::cerr,
                              planner::current_terminal());
}
