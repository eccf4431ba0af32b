// halfulp doctor: what this machine and this build have, and what of the catalog no hardware has proven.

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "emulation/recordings/kernel_name.h"
#include "emulation/simd/simd.h"
#include "formats/ptx_cvt.h"
#include "lib/error.h"
#include "lib/threads.h"
#include "tools/backends.h"
#include "tools/facts.h"
#include "tools/halfulp_version.h"
#include "tools/kernel_text.h"
#include "tools/options.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(How a conversion's model is known: measured on hardware over every input, matched with published recordings of some
inputs, or read in the PTX ISA only. On a GPU a conversion is native, the instruction itself, or emulated by its model.
What is native here and not measured yet is worth a recording: halfulp record -o FILE.json.
Of recordings that are named it says which recipes' kernels they prove, by comparing them with the CPU: `proven` is a
kernel that computed all of the recorded matrix as the CPU does, from F32, F16 and BF16, in the form that is stated.
'halfulp replay' shows what differs, and compares conversions.
A machine without a GPU is no fault: the exit code is 0.)";

// A device of a backend, or why it cannot be used.
struct Device {
  std::string name;  // "cuda:0"
  std::optional<DeviceInfo> info;
  std::string problem;
  std::vector<KernelForms> forms;  // of the backend's kernels
};

std::vector<KernelForms> kernel_forms(const Backend& backend) {
  std::vector<KernelForms> forms;
  for (const Recipe& recipe : backend.kernels) forms.push_back(backend.kernel_forms(recipe));
  return forms;
}

std::vector<Device> devices_of(const Backend& backend) {
  std::vector<Device> devices;
  int count = 0;
  try {
    count = backend.count();
  } catch (const EnvironmentError& error) {
    devices.push_back({std::string(backend.name), std::nullopt, error.what(), {}});
  }
  for (int i = 0; i < count; ++i) {
    Device& device = devices.emplace_back(Device{fmt::format("{}:{}", backend.name, i), std::nullopt, "", {}});
    try {
      device.info = backend.open(i);
      device.forms = kernel_forms(backend);
    } catch (const EnvironmentError& error) {
      device.problem = error.what();
    }
  }
  return devices;
}

std::vector<Device> all_devices() {
  std::vector<Device> all;
  for (const Backend* backend : backends()) std::ranges::move(devices_of(*backend), std::back_inserter(all));
  return all;
}

std::string simd_text() {
  const std::vector<std::string_view> targets = simd::targets();
  return fmt::format("{}", fmt::join(targets, ", "));
}

Facts build_facts() {
  std::string built;
  for (const Backend* backend : backends()) built += fmt::format("{} ({})", backend->name, backend->targets);
  const std::string simd = simd_text();
  return {{"version", kVersion},
          {"instruction_sets", Json(simd::targets()), simd + " (the first is used)"},
          {"threads", default_threads()},
          {"backends", built.empty() ? "none: built without CUDA" : built}};
}

Facts device_row(const Device& device) {
  const DeviceInfo info = device.info.value_or(DeviceInfo{});
  const auto native = std::ranges::count(info.native, true);
  const auto emulated = std::ptrdiff_t(info.native.size()) - native;
  return {{"device", device.name}, {"name", info.name},     {"compute", info.compute},   {"runs_code_for", info.target},
          {"driver", info.driver}, {"native", int(native)}, {"emulated", int(emulated)}, {"problem", device.problem}};
}

std::string form_on(const Device& device, std::size_t id) {
  if (!device.info) return "-";
  return device.info->native[id] ? "native" : "emulated";
}

// How many conversions are known how, and how many of those a device has.
std::vector<Facts> evidence_rows(const std::vector<Device>& devices) {
  std::vector<Facts> rows;
  for (std::size_t evidence = 0; evidence < kEvidenceNames.size(); ++evidence) {
    const auto is_such = [&](const PtxCvtRow& row) { return row.evidence == Evidence(evidence); };
    Facts& row = rows.emplace_back(
        Facts{{"evidence", kEvidenceNames[evidence]}, {"conversions", int(std::ranges::count_if(kPtxCvts, is_such))}});
    for (const Device& device : devices) {
      if (!device.info) continue;
      int native = 0;
      for (std::size_t id = 0; id < kPtxCvts.size(); ++id) native += is_such(kPtxCvts[id]) && device.info->native[id];
      row.emplace_back("native_on_" + device.name, native);
    }
    row.emplace_back("meaning", kEvidenceTexts[evidence]);
  }
  return rows;
}

std::vector<Facts> conversion_rows(const std::vector<Device>& devices) {
  std::vector<Facts> rows;
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id) {
    const PtxCvtRow& row = kPtxCvts[id];
    Facts& facts = rows.emplace_back(Facts{{"instruction", row.name},
                                           {"evidence", kEvidenceNames[std::size_t(row.evidence)]},
                                           {"since", kSinces[std::size_t(row.since)].name}});
    for (const Device& device : devices)
      if (device.info) facts.emplace_back(device.name, form_on(device, id));
  }
  return rows;
}

// The recipes that have a kernel of their own, in the order of the kernels, and how it converts on each device.
std::vector<Facts> kernel_rows(const std::vector<Device>& devices) {
  std::vector<Facts> rows;
  for (const Backend* backend : backends()) {
    for (std::size_t i = 0; i < backend->kernels.size(); ++i) {
      const Recipe& recipe = backend->kernels[i];
      Facts& facts = rows.emplace_back(
          Facts{{"recipe", stated_name(recipe)}, {"element", recipe.element.name()}, {"scale", recipe.scale.name()}});
      for (const Device& device : devices) {
        if (!device.info || !device.name.starts_with(backend->name)) continue;
        const auto& [elements, scales] = device.forms[i];
        facts.emplace_back(device.name + "_elements", form_text(elements));
        facts.emplace_back(device.name + "_scales", scales ? form_text(*scales) : "");
      }
    }
  }
  return rows;
}

// What a recording says of the kernels.
struct Proof {
  std::string path;
  Recording recording;
  std::vector<KernelReplay> kernels;
};

std::vector<Proof> proofs_of(const Arguments& arguments) {
  std::vector<Proof> proofs;
  for (const std::string& path : arguments.positionals("RECORDING"))
    proofs.push_back({.path = path, .recording = read_recording(path), .kernels = {}});
  for (Proof& proof : proofs) {
    proof.kernels = kernels_to_replay(proof.path, proof.recording);
    replay_kernels(proof.kernels, default_threads(), [](uint64_t) {});
  }
  return proofs;
}

// Of one recipe's kernels.
std::string state_of(std::span<const KernelReplay> kernels) {
  if (!std::ranges::all_of(kernels, &KernelReplay::agrees)) return "differs";
  const auto is_whole = [](const KernelReplay& kernel) { return kernel.recorded->chunks.size() == kKernelChunks; };
  const bool whole = kernels.size() == std::size(kKernelDtypes) && std::ranges::all_of(kernels, is_whole);
  return whole ? "proven" : kernels.empty() ? "not recorded" : "proven in part";
}

Facts proof_row(const std::string& recipe, std::span<const KernelReplay> kernels) {
  const KernelForms forms = kernels.empty() ? KernelForms{} : kernels.front().recorded->forms;
  uint64_t elements = 0;
  for (const KernelReplay& kernel : kernels) elements += elements_of(*kernel.recorded);
  return {{"recipe", recipe},
          {"elements", kernels.empty() ? "" : form_text(forms.native_elements)},
          {"scales", form_text(forms.native_scales)},
          {"compared", elements, count_cell(elements).text},
          {"state", state_of(kernels)}};
}

// The recipes of a recording, and those that have a kernel in this build and are not in it.
std::vector<Facts> proof_rows(const Proof& proof) {
  std::vector<Facts> rows;
  std::span<const KernelReplay> rest = proof.kernels;
  while (!rest.empty()) {
    const std::string& recipe = rest.front().recorded->recipe;
    const auto end = std::ranges::find_if(rest, [&](const KernelReplay& k) { return k.recorded->recipe != recipe; });
    rows.push_back(proof_row(recipe, rest.first(std::size_t(end - rest.begin()))));
    rest = rest.subspan(std::size_t(end - rest.begin()));
  }
  for (const Backend* backend : backends())
    for (const Recipe& recipe : backend->kernels)
      if (std::ranges::none_of(rows, [&](const Facts& facts) { return facts[0].text == stated_name(recipe); }))
        rows.push_back(proof_row(stated_name(recipe), {}));
  return rows;
}

std::string proofs_text(const std::vector<Proof>& proofs, Color color) {
  std::string text;
  for (const Proof& proof : proofs) {
    text += fmt::format("\nKernels in {} ({}, {}):\n", proof.path, proof.recording.device, proof.recording.target);
    const std::vector<Facts> rows = proof_rows(proof);
    text += rows.empty() ? "none\n" : to_text(to_table(rows), color);
  }
  return text;
}

Json proofs_json(const std::vector<Proof>& proofs) {
  Json list = Json::array();
  for (const Proof& proof : proofs)
    list.push_back({{"file", proof.path},
                    {"device", proof.recording.device},
                    {"target", proof.recording.target},
                    {"kernels", to_json(proof_rows(proof))}});
  return list;
}

std::string text_of(const std::vector<Device>& devices, Color color) {
  std::string text = to_lines(build_facts());
  std::vector<Facts> rows;
  for (const Device& device : devices) rows.push_back(device_row(device));
  if (!rows.empty()) text += "\nGPUs, and how many of the conversions each has:\n" + to_text(to_table(rows), color);
  if (const std::vector<Facts> kernels = kernel_rows(devices); !kernels.empty())
    text += "\nRecipes with a kernel of their own, and how it converts:\n" + to_text(to_table(kernels), color);
  text += "\nConversions, by how their models are known:\n" + to_text(to_table(evidence_rows(devices)), color);
  std::vector<Facts> unproven = conversion_rows(devices);
  std::erase_if(unproven, [](const Facts& facts) { return facts[1].text == kEvidenceNames[0]; });
  return text + "\nConversions that have not been measured on hardware over every input:\n" +
         to_text(to_table(unproven), color);
}

Json json_of(const std::vector<Device>& devices) {
  Json body = to_json(build_facts());
  body["devices"] = Json::array();
  for (const Device& device : devices) body["devices"].push_back(to_json(device_row(device)));
  body["kernels"] = to_json(kernel_rows(devices));
  body["evidence"] = to_json(evidence_rows(devices));
  body["conversions"] = to_json(conversion_rows(devices));
  return body;
}

ExitCode run(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  const std::vector<Proof> proofs = proofs_of(arguments);
  const std::vector<Device> devices = all_devices();
  Json json = json_of(devices);
  if (!proofs.empty()) json["recordings"] = proofs_json(proofs);
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("doctor", json); break;
    case OutputMode::csv: std::cout << to_csv(to_table(conversion_rows(devices))); break;
    case OutputMode::text: std::cout << text_of(devices, color) << proofs_text(proofs, color); break;
  }
  return ExitCode::good;
}

}  // namespace

Verb doctor_verb() {
  return {
      .name = "doctor",
      .summary = "what this machine's GPU has, what is emulated there, and what no hardware has proven",
      .examples = {{"halfulp doctor", "this machine, this build, and the conversions that are not measured"},
                   {"halfulp doctor --csv", "every conversion"}},
      .positionals = {{.name = "RECORDING", .help = "FILE.json of 'halfulp record'", .count = Positional::Count::any}},
      .options = {"--json", "--csv", "--color"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
