#pragma once
// The one table of options. A verb lists the rows that it takes; a new option is a row in options.cpp.

#include <span>

#include "lib/cli.h"
#include "lib/progress.h"
#include "lib/table.h"

namespace halfulp {

std::span<const Option> option_table();

// --threads, or as many as there are processors.
int threads_of(const Arguments& arguments);

ProgressMode progress_of(const Arguments& arguments);

// --color, NO_COLOR and whether stdout is a terminal.
Color color_of(const Arguments& arguments);

enum class OutputMode { text, json, csv };
// --json and --csv, which exclude each other.
OutputMode output_mode_of(const Arguments& arguments);

// Of a verb that computes on the CPU only: throws unless --device is that.
void check_device(const Arguments& arguments);

// --format as a catalog position. An unknown name is a UsageError with a suggestion.
int format_of(std::string_view name);

}  // namespace halfulp
