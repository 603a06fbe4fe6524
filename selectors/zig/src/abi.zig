//! The selector behind the C interface of foldproof_selector.h, version 1. The structs repeat the header's.

const std = @import("std");
const json = @import("json.zig");
const capture = @import("capture.zig");
const rules = @import("rules.zig");

/// A check that fails ends the process with its message, without the stack trace that would double the build.
pub const panic = std.debug.simple_panic;

const gpa = std.heap.c_allocator;

const Text = extern struct { offset: u32, length: u32 };
const Arg = extern struct {
    number: u64,
    bytes: u64,
    name: u32,
    type: u32,
    kind: u8,
    has_bytes: u8,
    reserved: [6]u8,
};
const Const = extern struct { value: u64, name: u32, kind: u8, reserved: [3]u8 };
const Launch = extern struct {
    num_warps: i64,
    num_stages: i64,
    function: u32,
    first_arg: u32,
    arg_count: u32,
    first_const: u32,
    const_count: u32,
    arch: u32,
    source: u32,
    enable_fp_fusion: i32,
};
const Batch = extern struct {
    text: [*]const u8,
    strings: [*]const Text,
    args: [*]const Arg,
    consts: [*]const Const,
    launches: [*]const Launch,
    text_size: u64,
    string_count: u64,
    arg_count: u64,
    const_count: u64,
    launch_count: u64,
};

const missing = -1;
const invalid_launch = -3;

export fn foldproof_selector_abi() u32 {
    rules.plant();
    return 1;
}

export fn foldproof_selector_name() [*:0]const u8 {
    return "zig-three-pass";
}

export fn foldproof_selector_kinds() u64 {
    return (1 << rules.kind_names.len) - 1;
}

/// A capture, and what deciding a batch against it reuses.
const Handle = struct {
    of: *capture.Capture,
    /// The capture's id of each kind's name, which is the type that a param of the kind has.
    kinds: [rules.kind_names.len]capture.Id,
    /// The capture's ids of the batch's strings, filled on demand: `unread` before that.
    ids: std.ArrayList(capture.Id) = .empty,
    args: std.ArrayList(rules.Arg) = .empty,
    consts: std.ArrayList(rules.NamedConst) = .empty,
};
const unread = capture.unknown - 1;

export fn foldproof_selector_load(text: [*]const u8, length: u64, out: **Handle, why: [*]u8, why_size: u64) i32 {
    var scratch = std.heap.ArenaAllocator.init(gpa);
    defer scratch.deinit();
    var s = json.Scanner.init(text[0..length], scratch.allocator());
    out.* = load(&s) catch |problem| {
        const said = if (problem == error.OutOfMemory) "does not fit into memory" else s.why;
        if (why_size > 0) {
            const count = @min(said.len, why_size - 1);
            @memcpy(why[0..count], said[0..count]);
            why[count] = 0;
        }
        return 1;
    };
    return 0;
}

fn load(s: *json.Scanner) json.Error!*Handle {
    var of: ?*capture.Capture = null;
    errdefer if (of) |loaded| loaded.deinit();
    var others: json.Keys = .{};
    var first = true;
    try s.object();
    while (try s.member(&first)) |key| {
        if (json.eql(key, "kernels")) {
            if (of != null) return s.invalid("a key is repeated");
            of = try capture.read(gpa, s);
        } else {
            try others.add(s, key);
            try s.skipUnique();
        }
    }
    try s.end();
    const loaded = of orelse return s.invalid("a capture has kernels");
    const handle = try gpa.create(Handle);
    handle.* = .{ .of = loaded, .kinds = undefined };
    for (rules.kind_names, &handle.kinds) |name, *id| id.* = loaded.id(name);
    return handle;
}

export fn foldproof_selector_free(handle: *Handle) void {
    handle.of.deinit();
    handle.ids.deinit(gpa);
    handle.args.deinit(gpa);
    handle.consts.deinit(gpa);
    gpa.destroy(handle);
}

export fn foldproof_selector_decide(handle: *Handle, batch: *const Batch, picks: [*]i32, passes: [*]u8) void {
    handle.ids.resize(gpa, batch.string_count) catch return;
    @memset(handle.ids.items, unread);
    for (batch.launches[0..batch.launch_count], 0..) |*launch, position| {
        const resolved = resolve(handle, batch, launch) catch |problem| {
            // Out of memory leaves the pick unwritten, which the caller takes as a fault.
            if (problem == error.Invalid) picks[position] = invalid_launch;
            continue;
        };
        if (rules.select(handle.of, &resolved)) |selection| {
            picks[position] = @intCast(selection.index);
            passes[position] = 1 + @intFromEnum(selection.strictness);
        } else picks[position] = missing;
    }
}

/// The launch in the capture's numbers; invalid if an arg is given twice or a value does not fit its kind.
fn resolve(handle: *Handle, batch: *const Batch, launch: *const Launch) error{ Invalid, OutOfMemory }!rules.Launch {
    const args = batch.args[launch.first_arg..][0..launch.arg_count];
    const consts = batch.consts[launch.first_const..][0..launch.const_count];
    try handle.args.resize(gpa, args.len);
    try handle.consts.resize(gpa, consts.len);
    for (args, handle.args.items, 0..) |*arg, *resolved, position| {
        for (args[0..position]) |*other| {
            if (other.name == arg.name) return error.Invalid;
        }
        if (!fits(arg)) return error.Invalid;
        resolved.* = .{
            .name = idOf(handle, batch, arg.name),
            .type = if (arg.kind == @intFromEnum(rules.Kind.ptr)) idOf(handle, batch, arg.type) else handle.kinds[arg.kind],
            .kind = @enumFromInt(arg.kind),
            .number = arg.number,
            .bytes = if (arg.has_bytes != 0) arg.bytes else null,
        };
    }
    for (consts, handle.consts.items) |*constant, *resolved| {
        if (constant.kind > @intFromEnum(capture.ConstKind.none)) return error.Invalid;
        const kind: capture.ConstKind = @enumFromInt(constant.kind);
        resolved.* = .{ .name = idOf(handle, batch, constant.name), .value = .{
            .kind = kind,
            .value = if (kind == .str) idOf(handle, batch, @intCast(constant.value)) else constant.value,
        } };
    }
    return .{
        .@"fn" = idOf(handle, batch, launch.function),
        .args = handle.args.items,
        .consts = handle.consts.items,
        .num_warps = if (launch.num_warps < 0) null else launch.num_warps,
        .num_stages = if (launch.num_stages < 0) null else launch.num_stages,
        .arch = idOf(handle, batch, launch.arch),
        .source = idOf(handle, batch, launch.source),
        .enable_fp_fusion = if (launch.enable_fp_fusion < 0) null else launch.enable_fp_fusion != 0,
    };
}

fn fits(arg: *const Arg) bool {
    const value: i64 = @bitCast(arg.number);
    return switch (arg.kind) {
        0 => value == @as(i32, @truncate(value)),
        1, 2, 6 => true,
        3 => arg.number <= 1,
        4 => arg.number <= std.math.maxInt(u32),
        5 => arg.number == 0,
        else => false,
    };
}

inline fn idOf(handle: *Handle, batch: *const Batch, string: u32) capture.Id {
    if (string == capture.absent) return capture.absent;
    const known = handle.ids.items[string];
    return if (known != unread) known else look(handle, batch, string);
}

noinline fn look(handle: *Handle, batch: *const Batch, string: u32) capture.Id {
    const where = batch.strings[string];
    const id = handle.of.id(batch.text[where.offset..][0..where.length]);
    handle.ids.items[string] = id;
    return id;
}
