//! The policy `three-pass` (docs/reference/rules.md): exact, general, runtime-one; the first match of the strictest
//! pass that has one. The three strictnesses are nested, so one sweep finds for each candidate the strictest that it
//! meets. `planted` tells of a known fault that was built in, to measure what a campaign finds.

const std = @import("std");
const capture = @import("capture.zig");
const Id = capture.Id;

pub const Fault = enum {
    none,
    single_guard,
    div16_ignored_on_pointers,
    nospec_ignored,
    folded_without_value,
    count_unchecked,
    consts_without_kind,
    last_match,
    exact_skipped,
    source_unchecked,
    range32_ignored,
    /// The fault that the environment variable FOLDPROOF_PLANTED names when the selector starts.
    any,
};

const configured: Fault = @field(Fault, @import("config").planted);
var chosen: Fault = .none;

extern "c" fn getenv(name: [*:0]const u8) ?[*:0]const u8;

/// Looks for FOLDPROOF_PLANTED, if this was built to.
pub fn plant() void {
    if (configured != .any) return;
    const name = getenv("FOLDPROOF_PLANTED") orelse return;
    chosen = std.meta.stringToEnum(Fault, std.mem.span(name)) orelse .none;
}

inline fn planted(comptime fault: Fault) bool {
    return if (configured == .any) chosen == fault else configured == fault;
}

pub const Kind = enum(u8) { i32, i64, u64, u1, fp32, none, ptr };
/// In the order of `Kind`; but for pointers, the name of a kind is the type that a param must have.
pub const kind_names = [_][]const u8{ "i32", "i64", "u64", "u1", "fp32", "none", "ptr" };

pub const Arg = struct {
    name: Id,
    /// What a param's type must be: the id of the kind's name, or of the pointer's type.
    type: Id,
    kind: Kind,
    /// The 64 bits of the value (two's complement), the address, the bits, 0 or 1.
    number: u64,
    /// Of a pointer: its allocation, in bytes, where the launch says it.
    bytes: ?u64,
};

pub const NamedConst = struct { name: Id, value: capture.Const };

pub const Launch = struct {
    @"fn": Id,
    args: []const Arg,
    consts: []const NamedConst,
    num_warps: ?i64 = null,
    num_stages: ?i64 = null,
    arch: Id = capture.absent,
    source: Id = capture.absent,
    enable_fp_fusion: ?bool = null,
};

/// Strictest first; the order of the values is the order of the passes.
pub const Strictness = enum(u8) {
    exact,
    general,
    runtime_one,
    refused,

    pub fn word(self: Strictness) []const u8 {
        return switch (self) {
            .exact => "exact",
            .general => "general",
            .runtime_one => "runtime-one",
            .refused => unreachable,
        };
    }
};

pub const Selection = struct { index: u32, strictness: Strictness };

/// The picked variant, or null where no candidate is admissible in any pass.
pub fn select(of: *const capture.Capture, launch: *const Launch) ?Selection {
    const function = of.function(launch.@"fn") orelse return null;
    var best: ?Selection = null;
    var best_pass: u8 = @intFromEnum(Strictness.refused);
    for (function.candidates) |index| {
        const met = strictness(function, &of.variants[index], launch);
        const pass = passOf(met);
        const wins = if (planted(.last_match)) pass <= best_pass and met != .refused else pass < best_pass;
        if (!wins) continue;
        best = .{ .index = index, .strictness = met };
        best_pass = pass;
        if (pass == 0 and !planted(.last_match)) break;
    }
    return best;
}

fn passOf(met: Strictness) u8 {
    const pass = @intFromEnum(met);
    const general = @intFromEnum(Strictness.general);
    if (planted(.single_guard) and met == .runtime_one) return general;
    if (planted(.exact_skipped) and met == .exact) return general;
    return pass;
}

/// The strictest strictness whose rules the variant meets for the launch.
fn strictness(function: *const capture.Function, variant: *const capture.Variant, launch: *const Launch) Strictness {
    if (!planted(.source_unchecked) and bothDiffer(variant.source, launch.source)) return .refused;
    if (optionsDiffer(variant, launch)) return .refused;
    for (launch.consts) |wanted| {
        if (!holdsConst(placeOf(function, variant, wanted.name), wanted.value)) return .refused;
    }
    var met = Strictness.exact;
    var read: usize = 0;
    for (launch.args) |*arg| {
        switch (placeOf(function, variant, arg.name).*) {
            .nowhere => return .refused,
            .constant => |constant| if (!foldsInto(arg, constant)) return .refused,
            .param => |*param| {
                read += 1;
                const here = paramStrictness(arg, param);
                if (here == .refused) return .refused;
                if (@intFromEnum(here) > @intFromEnum(met)) met = here;
            },
        }
    }
    if (!planted(.count_unchecked) and read != variant.param_count) return .refused;
    return met;
}

fn placeOf(function: *const capture.Function, variant: *const capture.Variant, name: Id) *const capture.Place {
    for (function.names, variant.places) |known, *place| {
        if (known == name) return place;
    }
    return &.nowhere;
}

/// Where both say one, they must be equal.
fn bothDiffer(recorded: Id, pinned: Id) bool {
    return recorded != capture.absent and pinned != capture.absent and recorded != pinned;
}

fn optionsDiffer(variant: *const capture.Variant, launch: *const Launch) bool {
    if (launch.num_warps) |pinned| {
        if (variant.num_warps != pinned) return true;
    }
    if (launch.num_stages) |pinned| {
        if (variant.num_stages != 0 and variant.num_stages != pinned) return true;
    }
    if (launch.enable_fp_fusion) |pinned| {
        if (variant.enable_fp_fusion) |recorded| {
            if (recorded != pinned) return true;
        }
    }
    return bothDiffer(variant.arch, launch.arch);
}

fn holdsConst(place: *const capture.Place, wanted: capture.Const) bool {
    return switch (place.*) {
        .constant => |present| present.value == wanted.value and
            (planted(.consts_without_kind) or present.kind == wanted.kind),
        else => false,
    };
}

/// An i32 of value 1 into a folded 1, None into none, and nothing else.
fn foldsInto(arg: *const Arg, constant: capture.Const) bool {
    return switch (arg.kind) {
        .none => constant.kind == .none,
        .i32 => constant.kind == .int and constant.value == 1 and
            (planted(.folded_without_value) or arg.number == 1),
        else => false,
    };
}

const range32_bytes = (1 << 31) - 1;

fn paramStrictness(arg: *const Arg, param: *const capture.Param) Strictness {
    if (param.range32 and !planted(.range32_ignored)) {
        if (arg.kind != .ptr or (arg.bytes orelse return .refused) > range32_bytes) return .refused;
    }
    const is_int = arg.kind == .i32 or arg.kind == .i64 or arg.kind == .u64;
    if (arg.kind == .none) return .refused;
    if (is_int and param.annotated != null) {
        if (!holds(param.annotated.?, arg)) return .refused;
    } else {
        if (arg.type != param.type) return .refused;
        if (arg.kind == .i64 and arg.number == 1) return .refused;
    }
    const nospec = param.nospec and !planted(.nospec_ignored);
    const foldable_one = arg.kind == .i32 and arg.number == 1 and !nospec and param.annotated == null;
    const met: Strictness = if (foldable_one) .runtime_one else .exact;
    if (!is_int and (arg.kind != .ptr or planted(.div16_ignored_on_pointers))) return met;
    const aligned = arg.number % 16 == 0;
    const expected = aligned and !nospec and !param.noalign;
    if (param.div16 == expected) return met;
    // Assumed and not so; or, of an int, assumed although its switches rule the assumption out.
    if (param.div16 and (!aligned or is_int)) return .refused;
    return if (met == .exact) .general else met;
}

fn holds(range: capture.IntType, arg: *const Arg) bool {
    const value: i128 = if (arg.kind == .u64) arg.number else @as(i64, @bitCast(arg.number));
    return range.low <= value and value <= range.high;
}

/// Whether the selected variant reads this arg as a foldable 1.
pub fn readsOne(of: *const capture.Capture, launch: *const Launch, selection: Selection, arg: *const Arg) bool {
    if (arg.kind != .i32 or arg.number != 1) return false;
    const function = of.function(launch.@"fn").?;
    return switch (placeOf(function, &of.variants[selection.index], arg.name).*) {
        .param => |param| !param.nospec and param.annotated == null,
        else => false,
    };
}
