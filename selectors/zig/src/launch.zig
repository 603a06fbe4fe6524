//! A launch, read strictly from its JSON. Reading does not need the capture: texts stay texts until `resolve`.

const std = @import("std");
const json = @import("json.zig");
const capture = @import("capture.zig");
const rules = @import("rules.zig");
const Scanner = json.Scanner;
const eql = json.eql;

const RawArg = struct { name: []const u8, type: []const u8, kind: rules.Kind, number: u64, bytes: ?u64 };
const RawNamedConst = struct { name: []const u8, value: capture.RawConst };

/// Reused from launch to launch, so that reading one allocates nothing once the lists have grown.
pub const Reader = struct {
    gpa: std.mem.Allocator,
    raw_args: std.ArrayList(RawArg) = .empty,
    raw_consts: std.ArrayList(RawNamedConst) = .empty,
    args: std.ArrayList(rules.Arg) = .empty,
    consts: std.ArrayList(rules.NamedConst) = .empty,
    @"fn": []const u8 = "",
    arch: ?[]const u8 = null,
    source: ?[]const u8 = null,
    launch: rules.Launch = undefined,

    /// Reads the launch that the scanner stands before. `error.Invalid` leaves the reason in `s.why`.
    pub fn read(self: *Reader, s: *Scanner) json.Error!void {
        self.raw_args.clearRetainingCapacity();
        self.raw_consts.clearRetainingCapacity();
        self.@"fn" = "";
        self.arch = null;
        self.source = null;
        self.launch = .{ .@"fn" = capture.unknown, .args = &.{}, .consts = &.{} };
        var seen: [8]bool = @splat(false);
        var first = true;
        try s.object();
        while (try s.member(&first)) |key| {
            const field = fieldNamed(key) orelse return s.invalid("a launch has an unknown field");
            const at: usize = @intFromEnum(field);
            if (seen[at]) return s.invalid("a key is repeated");
            seen[at] = true;
            switch (field) {
                .@"fn" => self.@"fn" = try capture.nonEmpty(s),
                .args => try self.readArgs(s),
                .consts => try self.readConsts(s),
                else => if (!try s.isNull()) try self.readOption(s, field),
            }
        }
        if (!seen[0] or !seen[1]) return s.invalid("a launch has fn and args");
    }

    fn readOption(self: *Reader, s: *Scanner, field: Field) json.Error!void {
        const max = std.math.maxInt(i64);
        switch (field) {
            .num_warps => self.launch.num_warps = @intCast(try s.integerIn(1, max, "num_warps is at least 1")),
            .num_stages => self.launch.num_stages = @intCast(try s.integerIn(0, max, "num_stages is at least 0")),
            .enable_fp_fusion => self.launch.enable_fp_fusion = try s.boolean(),
            .arch => self.arch = try s.string(),
            .source => self.source = try s.string(),
            .@"fn", .args, .consts => unreachable,
        }
    }

    fn readArgs(self: *Reader, s: *Scanner) json.Error!void {
        var first = true;
        try s.array();
        while (try s.item(&first)) {
            const arg = try readArg(s);
            for (self.raw_args.items) |other| {
                if (std.mem.eql(u8, other.name, arg.name)) return s.invalid("an arg is given twice");
            }
            try self.raw_args.append(self.gpa, arg);
        }
    }

    fn readConsts(self: *Reader, s: *Scanner) json.Error!void {
        var first = true;
        try s.object();
        while (try s.member(&first)) |name| {
            for (self.raw_consts.items) |other| {
                if (std.mem.eql(u8, other.name, name)) return s.invalid("a key is repeated");
            }
            try self.raw_consts.append(self.gpa, .{ .name = name, .value = try capture.readConst(s) });
        }
    }

    /// The launch in the numbers of one capture; good until the next `read` or `resolve`.
    pub fn resolve(self: *Reader, of: *const capture.Capture) error{OutOfMemory}!*const rules.Launch {
        self.args.clearRetainingCapacity();
        self.consts.clearRetainingCapacity();
        for (self.raw_args.items) |raw| try self.args.append(self.gpa, .{
            .name = of.id(raw.name),
            .type = of.id(raw.type),
            .kind = raw.kind,
            .number = raw.number,
            .bytes = raw.bytes,
        });
        for (self.raw_consts.items) |raw| try self.consts.append(self.gpa, .{ .name = of.id(raw.name), .value = .{
            .kind = raw.value.kind,
            .value = if (raw.value.kind == .str) of.id(raw.value.text) else raw.value.value,
        } });
        self.launch.@"fn" = of.id(self.@"fn");
        self.launch.args = self.args.items;
        self.launch.consts = self.consts.items;
        self.launch.arch = if (self.arch) |text| of.id(text) else capture.absent;
        self.launch.source = if (self.source) |text| of.id(text) else capture.absent;
        return &self.launch;
    }

    /// The name of an arg of the launch last resolved.
    pub fn argName(self: *const Reader, position: usize) []const u8 {
        return self.raw_args.items[position].name;
    }
};

const Field = enum(u8) { @"fn", args, consts, num_warps, num_stages, arch, enable_fp_fusion, source };

fn fieldNamed(key: []const u8) ?Field {
    if (eql(key, "fn")) return .@"fn";
    if (eql(key, "args")) return .args;
    if (eql(key, "consts")) return .consts;
    return std.meta.stringToEnum(Field, key);
}

/// What an arg says, before its kind decides what it had to say.
const Said = struct {
    name: ?[]const u8 = null,
    kind: ?rules.Kind = null,
    value: ?union(enum) { int: i128, bool: bool } = null,
    bits: ?u64 = null,
    type: ?[]const u8 = null,
    addr: ?u64 = null,
    bytes: ?u64 = null,
    seen: u8 = 0,

    fn once(self: *Said, s: *Scanner, comptime bit: u3) json.Error!void {
        if (self.seen & (1 << bit) != 0) return s.invalid("a key is repeated");
        self.seen |= 1 << bit;
    }
};

fn readArg(s: *Scanner) json.Error!RawArg {
    var said: Said = .{};
    var first = true;
    try s.object();
    while (try s.member(&first)) |key| {
        if (eql(key, "name")) {
            try said.once(s, 0);
            said.name = try capture.nonEmpty(s);
        } else if (eql(key, "kind")) {
            try said.once(s, 1);
            said.kind = kindNamed(try s.string()) orelse return s.invalid("an arg has an unknown kind");
        } else if (eql(key, "value")) {
            try said.once(s, 2);
            const next = s.peek();
            if (next == 't' or next == 'f') {
                said.value = .{ .bool = try s.boolean() };
            } else if (!try s.isNull()) said.value = .{ .int = try s.integer() };
        } else if (eql(key, "type")) {
            try said.once(s, 3);
            if (!try s.isNull()) said.type = try s.string();
        } else if (eql(key, "addr")) {
            try said.once(s, 4);
            if (!try s.isNull()) said.addr = try address(s);
        } else if (eql(key, "bytes")) {
            try said.once(s, 5);
            // More than 64 bits of bytes is only ever "too many"; saturate.
            if (!try s.isNull()) said.bytes = std.math.lossyCast(u64, try s.integerIn(0, std.math.maxInt(i128), "bytes is at least 0"));
        } else if (eql(key, "bits")) {
            try said.once(s, 6);
            if (!try s.isNull()) said.bits = @intCast(try s.integerIn(0, (1 << 32) - 1, "bits holds 32 bits"));
        } else return s.invalid("an arg has an unknown field");
    }
    const name = said.name orelse return s.invalid("an arg has a name");
    const kind = said.kind orelse return s.invalid("an arg has a kind");
    return .{
        .name = name,
        .kind = kind,
        .type = if (kind == .ptr) said.type orelse "" else @tagName(kind),
        .number = try number(s, kind, said),
        .bytes = said.bytes,
    };
}

/// The arg's number, after the check that the arg says what its kind needs and nothing else.
fn number(s: *Scanner, kind: rules.Kind, said: Said) json.Error!u64 {
    const needs_value = kind != .ptr and kind != .fp32 and kind != .none;
    if ((said.value != null) != needs_value or (said.bits != null) != (kind == .fp32) or
        (said.type != null) != (kind == .ptr) or (said.addr != null) != (kind == .ptr))
        return s.invalid("an arg does not say what its kind needs, and nothing else");
    if (said.bytes != null and kind != .ptr) return s.invalid("only a pointer has bytes");
    switch (kind) {
        .ptr => {
            if (said.type.?.len == 0 or said.type.?[0] != '*') return s.invalid("a pointer's type starts with '*'");
            return said.addr.?;
        },
        .fp32 => return said.bits.?,
        .none => return 0,
        .u1 => return switch (said.value.?) {
            .bool => |value| @intFromBool(value),
            .int => s.invalid("u1 takes true or false"),
        },
        .i32, .i64, .u64 => {
            const value = switch (said.value.?) {
                .int => |value| value,
                .bool => return s.invalid("an int kind takes an integer"),
            };
            const range = capture.IntType.named(@tagName(kind)).?;
            if (value < range.low or value > range.high) return s.invalid("a value does not fit its kind");
            return if (kind == .u64) @intCast(value) else @bitCast(@as(i64, @intCast(value)));
        },
    }
}

fn kindNamed(text: []const u8) ?rules.Kind {
    return std.meta.stringToEnum(rules.Kind, text);
}

/// A 64-bit address: hex text, with or without 0x, or an integer.
fn address(s: *Scanner) json.Error!u64 {
    const why = "an address is hex text of at most 64 bits";
    if (s.peek() != '"') return @intCast(try s.integerIn(0, std.math.maxInt(u64), why));
    const text = try s.string();
    const prefixed = text.len > 2 and text[0] == '0' and (text[1] == 'x' or text[1] == 'X');
    var digits = if (prefixed) text[2..] else text;
    if (digits.len == 0) return s.invalid(why);
    while (digits.len > 1 and digits[0] == '0') digits = digits[1..];
    if (digits.len > 16) return s.invalid(why);
    var value: u64 = 0;
    for (digits) |byte| value = value << 4 | (json.hexDigit(byte) orelse return s.invalid(why));
    return value;
}
