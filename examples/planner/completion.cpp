#include "help.hpp"
#include "option_table.hpp"

#include <stowage/llm/forward_buffers.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

// Completions for bash and zsh, written from the table of options.

namespace planner {
namespace {

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::vector<std::string_view> words_of(const option_entry& option, command what) {
  if (option.completion == completion_kind::choices) return choices_of(option, what);
  std::vector<std::string_view> words;
  if (option.completion == completion_kind::buffer) {
    for (std::size_t field = 0; field < stowage::llm::forward_plan::field_count; ++field)
      words.push_back(stowage::llm::forward_plan::name(field));
  }
  return words;
}

std::string bash_script() {
  std::vector<std::string_view> names;
  for (const command_entry& each : command_entries()) names.emplace_back(each.name);
  std::string text = "# bash completion of stowage: source <(stowage completion bash)\n"
                     "_stowage() {\n"
                     "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
                     "  COMPREPLY=()\n"
                     "  if ((COMP_CWORD == 1)); then\n"
                     "    words='" +
                     joined(names) +
                     " --help --version --config-help'\n"
                     "  else\n"
                     "    case ${COMP_WORDS[1]}:$before in\n";
  for (const command_entry& each : command_entries()) {
    for (const option_entry& option : option_entries()) {
      if (!option.belongs_to(each.what) || option.is_argument()) continue;
      text.append("      ").append(each.name).append(":").append(option.name).append(") ");
      if (option.completion == completion_kind::file) {
        text.append("COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
      } else {
        text.append("words='").append(joined(words_of(option, each.what))).append("' ;;\n");
      }
    }
  }
  text += "      *)\n"
          "        case ${COMP_WORDS[1]} in\n";
  for (const command_entry& each : command_entries()) {
    std::vector<std::string_view> words;
    std::string arguments;
    for (const option_entry& option : option_entries()) {
      if (!option.belongs_to(each.what)) continue;
      if (!option.is_argument()) {
        words.emplace_back(option.name);
      } else if (option.completion != completion_kind::file) {
        arguments.append(" ").append(joined(words_of(option, each.what)));
      }
    }
    text.append("          ").append(each.name).append(") words='").append(joined(words)).append(" --help");
    text.append(arguments).append("' ;;\n");
  }
  return text + "        esac\n"
                "        [[ $word == -* ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
                "        ;;\n"
                "    esac\n"
                "  fi\n"
                "  COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n"
                "}\n"
                "complete -o filenames -F _stowage stowage\n";
}

/// A description on one line without what means something to _arguments or to the quotes around it.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char each : text) {
    if (each == '\'') continue;
    if (each == '[' || each == ']' || each == ':') result.push_back('\\');
    result.push_back(each == '\n' ? ' ' : each);
  }
  return result;
}

std::string zsh_action(const option_entry& option, command what) {
  if (option.completion == completion_kind::file) return "_files";
  const std::string words = joined(words_of(option, what));
  return words.empty() ? " " : "(" + words + ")";
}

std::string zsh_script() {
  std::string text = "#compdef stowage\n"
                     "# zsh completion of stowage: source <(stowage completion zsh), after compinit\n"
                     "_stowage() {\n"
                     "  local -a commands=(\n";
  for (const command_entry& each : command_entries())
    text.append("    '").append(each.name).append(":").append(zsh_text(each.description)).append("'\n");
  text += "  )\n"
          "  if ((CURRENT == 2)); then\n"
          "    _describe command commands\n"
          "    compadd -- --help --version --config-help\n"
          "    return\n"
          "  fi\n"
          "  local command=$words[2]\n"
          "  words=(\"stowage $command\" \"${(@)words[3,-1]}\")\n"
          "  ((CURRENT--))\n"
          "  case $command in\n";
  for (const command_entry& each : command_entries()) {
    text.append("    ").append(each.name).append(")\n      _arguments '--help[Show the help text]'");
    for (const option_entry& option : option_entries()) {
      if (!option.belongs_to(each.what)) continue;
      text.append(" \\\n        '");
      if (option.is_argument()) {
        text.append(option.required ? ":" : "::").append(zsh_text(option.name));
      } else {
        text.append(option.repeatable ? "*" : "").append(option.name).append("=[");
        text.append(zsh_text(option.description)).append("]:").append(zsh_text(option.type));
      }
      text.append(":").append(zsh_action(option, each.what)).append("'");
    }
    text.append(" ;;\n");
  }
  return text + "  esac\n"
                "}\n"
                "(( ${+functions[compdef]} )) && compdef _stowage stowage\n";
}

} // namespace

std::string completion_script(const std::string& shell) {
  return shell == "zsh" ? zsh_script() : bash_script();
}

} // namespace planner
