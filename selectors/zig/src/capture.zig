//! A capture, read strictly from its JSON and indexed for selection. Whatever a variant may assume is in here, so an
//! attribute of a param that this file does not know is refused; unknown fields of a variant describe its cubin.

const std = @import("std");
const json = @import("json.zig");
const Scanner = json.Scanner;
const eql = json.eql;

/// Every text that selection compares (names, types, sources) has a number, the same one within a capture.
pub const Id = u32;
/// The variant or launch says nothing here.
pub const absent: Id = std.math.maxInt(Id);
/// A text of a launch that the capture never mentions: equal to nothing.
pub const unknown: Id = absent - 1;

pub const ConstKind = enum(u8) {
    int,
    /// An int from 2^63 on: apart from `int` only in how its 64 bits are read, so never equal to one.
    uint,
    f32,
    bool,
    str,
    none,
};

pub const Const = struct {
    kind: ConstKind,
    /// The 64 bits of an int, the bits of an f32, 0 or 1, the id of a str, 1 for none.
    value: u64,
};

pub const Param = struct {
    type: Id,
    div16: bool,
    nospec: bool,
    noalign: bool,
    range32: bool,
    annotated: ?IntType,
};

/// Where a variant has a name of its function: nowhere, as a param, or as a constant.
pub const Place = union(enum) { nowhere, param: Param, constant: Const };

pub const Variant = struct {
    hash: []const u8,
    num_warps: i64,
    /// 0: not recorded.
    num_stages: i64,
    arch: Id,
    source: Id,
    enable_fp_fusion: ?bool,
    param_count: usize,
    /// One a name of the function, in the order of `Function.names`.
    places: []Place,
};

pub const Function = struct {
    name: []const u8,
    names: []Id,
    /// Indices into `Capture.variants`, in candidate order.
    candidates: []u32,
};

pub const IntType = struct {
    low: i128,
    high: i128,

    pub fn named(text: []const u8) ?IntType {
        if (text.len < 2 or text.len > 3) return null;
        const bits: u7 = if (eql(text[1..], "8")) 8 else if (eql(text[1..], "16")) 16 else if (eql(text[1..], "32")) 32 else if (eql(text[1..], "64")) 64 else return null;
        const one: i128 = 1;
        return switch (text[0]) {
            'i' => .{ .low = -(one << (bits - 1)), .high = (one << (bits - 1)) - 1 },
            'u' => .{ .low = 0, .high = (one << bits) - 1 },
            else => null,
        };
    }
};

pub const Capture = struct {
    arena: std.heap.ArenaAllocator,
    ids: std.StringHashMapUnmanaged(Id) = .empty,
    variants: []Variant = &.{},
    functions: []Function = &.{},
    /// Id of a name to the function of that name, as index + 1; 0 for ids that name no function.
    function_of: []u32 = &.{},
    /// Why the capture is invalid; every launch against it is answered `InvalidCapture`.
    fault: ?[]const u8 = null,

    pub fn id(self: *const Capture, text: []const u8) Id {
        return self.ids.get(text) orelse unknown;
    }

    pub fn function(self: *const Capture, name: Id) ?*const Function {
        if (name >= self.function_of.len or self.function_of[name] == 0) return null;
        return &self.functions[self.function_of[name] - 1];
    }

    pub fn deinit(self: *Capture) void {
        var arena = self.arena;
        arena.deinit();
    }
};

/// Reads the list of variants that the scanner stands before. `error.Invalid` leaves the reason in `scanner.why`.
pub fn read(gpa: std.mem.Allocator, scanner: *Scanner) json.Error!*Capture {
    var builder = Builder.init(gpa) catch |problem| return problem;
    errdefer builder.capture.deinit();
    try builder.kernels(scanner);
    return builder.capture;
}

/// A capture that only says why it is none.
pub fn broken(gpa: std.mem.Allocator, why: []const u8) error{OutOfMemory}!*Capture {
    const builder = try Builder.init(gpa);
    builder.capture.fault = why;
    return builder.capture;
}

const Named = struct { name: Id, place: Place };
const Draft = struct { function: Id, variant: Variant, named: []Named };

const Builder = struct {
    capture: *Capture,
    drafts: std.ArrayList(Draft) = .empty,

    fn init(gpa: std.mem.Allocator) error{OutOfMemory}!Builder {
        var arena = std.heap.ArenaAllocator.init(gpa);
        errdefer arena.deinit();
        const capture = try arena.allocator().create(Capture);
        capture.* = .{ .arena = arena };
        return .{ .capture = capture };
    }

    fn allocator(self: *Builder) std.mem.Allocator {
        return self.capture.arena.allocator();
    }

    fn intern(self: *Builder, text: []const u8) error{OutOfMemory}!Id {
        if (self.capture.ids.get(text)) |found| return found;
        const next = self.capture.ids.count();
        try self.capture.ids.put(self.allocator(), try self.allocator().dupe(u8, text), next);
        return next;
    }

    fn kernels(self: *Builder, s: *Scanner) json.Error!void {
        var first = true;
        var hashes: std.StringHashMapUnmanaged(void) = .empty;
        try s.array();
        while (try s.item(&first)) {
            const draft = try self.kernel(s);
            const entry = try hashes.getOrPut(s.arena, draft.variant.hash);
            if (entry.found_existing) return s.invalid("two variants share a hash");
            try self.drafts.append(s.arena, draft);
        }
        if (self.drafts.items.len == 0) return s.invalid("kernels is empty: there is nothing to select from");
        try self.index(s.arena);
    }

    fn kernel(self: *Builder, s: *Scanner) json.Error!Draft {
        var fields: Fields = .{};
        var others: json.Keys = .{};
        var named: std.ArrayList(Named) = .empty;
        var draft: Draft = .{ .function = absent, .named = &.{}, .variant = .{
            .hash = "",
            .num_warps = 0,
            .num_stages = 0,
            .arch = absent,
            .source = absent,
            .enable_fp_fusion = null,
            .param_count = 0,
            .places = &.{},
        } };
        const variant = &draft.variant;
        const natural = "a number of at least 0 was expected";
        var first = true;
        try s.object();
        while (try s.member(&first)) |key| {
            const field = std.meta.stringToEnum(Field, key) orelse {
                try others.add(s, key);
                try s.skipUnique();
                continue;
            };
            try fields.add(s, field);
            switch (field) {
                .@"fn" => draft.function = try self.intern(try nonEmpty(s)),
                .hash => variant.hash = try self.allocator().dupe(u8, try plainName(s)),
                .num_warps => variant.num_warps = @intCast(try s.integerIn(1, max64, "num_warps is at least 1")),
                .num_stages => variant.num_stages = @intCast(try s.integerIn(0, max64, natural)),
                .num_ctas => _ = try s.integerIn(1, max64, "num_ctas is at least 1"),
                .shared, .global_scratch, .global_align, .profile_scratch => _ = try s.integerIn(0, max64, natural),
                .pdl => _ = try s.boolean(),
                .name => _ = try s.string(),
                .arch => if (!try s.isNull()) {
                    variant.arch = try self.intern(try nonEmpty(s));
                },
                .source => if (!try s.isNull()) {
                    variant.source = try self.intern(try nonEmpty(s));
                },
                .enable_fp_fusion => if (!try s.isNull()) {
                    variant.enable_fp_fusion = try s.boolean();
                },
                .params => variant.param_count = try self.params(s, &named),
                .consts => try self.consts(s, &named),
            }
        }
        if (!fields.hasAll(&.{ .@"fn", .hash, .num_warps, .params, .consts }))
            return s.invalid("a variant has fn, hash, num_warps, params and consts");
        draft.named = named.items;
        return draft;
    }

    fn params(self: *Builder, s: *Scanner, named: *std.ArrayList(Named)) json.Error!usize {
        const before = named.items.len;
        var first = true;
        try s.array();
        while (try s.item(&first)) try self.addNamed(s, named, try self.param(s));
        return named.items.len - before;
    }

    fn param(self: *Builder, s: *Scanner) json.Error!Named {
        var seen: [7]bool = @splat(false);
        var flags: [5]bool = @splat(false);
        var name: []const u8 = "";
        var kind: []const u8 = "";
        var first = true;
        try s.object();
        while (try s.member(&first)) |key| {
            const field = std.meta.stringToEnum(ParamField, key) orelse
                return s.invalid("a param has an attribute that this selector does not know: it may be an assumption");
            const at: usize = @intFromEnum(field);
            if (seen[at]) return s.invalid("a key is repeated");
            seen[at] = true;
            switch (field) {
                .name => name = try nonEmpty(s),
                .type => kind = try nonEmpty(s),
                else => flags[at] = try s.boolean(),
            }
        }
        if (!(seen[0] and seen[1] and name.len > 0 and kind.len > 0))
            return s.invalid("a param has name, type, div16 and nospec");
        const annotated = if (flags[3]) IntType.named(kind) orelse
            return s.invalid("annotated is for an integer type") else null;
        return .{ .name = try self.intern(name), .place = .{ .param = .{
            .type = try self.intern(kind),
            .div16 = flags[0],
            .nospec = flags[1],
            .noalign = flags[2],
            .annotated = annotated,
            .range32 = flags[4],
        } } };
    }

    fn consts(self: *Builder, s: *Scanner, named: *std.ArrayList(Named)) json.Error!void {
        var first = true;
        try s.object();
        while (try s.member(&first)) |key| {
            const name = try self.intern(key);
            const raw = try readConst(s);
            const value = if (raw.kind == .str) try self.intern(raw.text) else raw.value;
            try self.addNamed(s, named, .{ .name = name, .place = .{ .constant = .{ .kind = raw.kind, .value = value } } });
        }
    }

    fn addNamed(_: *Builder, s: *Scanner, named: *std.ArrayList(Named), added: Named) json.Error!void {
        for (named.items) |other| {
            if (other.name == added.name) return s.invalid("a name is given twice among params and consts");
        }
        try named.append(s.arena, added);
    }

    /// Groups the drafts by function and lays out each variant's places in the order of the function's names.
    fn index(self: *Builder, scratch: std.mem.Allocator) error{OutOfMemory}!void {
        const capture = self.capture;
        const arena = self.allocator();
        const count = self.drafts.items.len;
        capture.variants = try arena.alloc(Variant, count);
        capture.function_of = try arena.alloc(u32, capture.ids.count());
        @memset(capture.function_of, 0);
        const Group = struct { name: Id, names: std.ArrayList(Id), candidates: std.ArrayList(u32) };
        var groups: std.ArrayList(Group) = .empty;
        for (self.drafts.items, 0..) |draft, position| {
            if (capture.function_of[draft.function] == 0) {
                try groups.append(scratch, .{ .name = draft.function, .names = .empty, .candidates = .empty });
                capture.function_of[draft.function] = @intCast(groups.items.len);
            }
            const group = &groups.items[capture.function_of[draft.function] - 1];
            try group.candidates.append(arena, @intCast(position));
            for (draft.named) |named| {
                if (std.mem.indexOfScalar(Id, group.names.items, named.name) == null)
                    try group.names.append(arena, named.name);
            }
        }
        capture.functions = try arena.alloc(Function, groups.items.len);
        var texts = try scratch.alloc([]const u8, capture.ids.count());
        var entries = capture.ids.iterator();
        while (entries.next()) |entry| texts[entry.value_ptr.*] = entry.key_ptr.*;
        for (groups.items, capture.functions) |group, *function| {
            function.* = .{ .name = texts[group.name], .names = group.names.items, .candidates = group.candidates.items };
        }
        for (self.drafts.items, capture.variants) |draft, *variant| {
            const names = capture.functions[capture.function_of[draft.function] - 1].names;
            variant.* = draft.variant;
            variant.places = try arena.alloc(Place, names.len);
            @memset(variant.places, .nowhere);
            for (draft.named) |named| {
                variant.places[std.mem.indexOfScalar(Id, names, named.name).?] = named.place;
            }
        }
    }
};

const max64 = std.math.maxInt(i64);

const Field = enum {
    @"fn",
    hash,
    num_warps,
    params,
    consts,
    num_stages,
    arch,
    source,
    enable_fp_fusion,
    name,
    num_ctas,
    shared,
    global_scratch,
    global_align,
    profile_scratch,
    pdl,
};

/// The five switches come first, so that they index an array of five.
const ParamField = enum(u8) { div16, nospec, noalign, annotated, range32, name, type };

const Fields = struct {
    seen: u32 = 0,

    fn add(self: *Fields, s: *Scanner, field: Field) json.Error!void {
        const bit = @as(u32, 1) << @intFromEnum(field);
        if (self.seen & bit != 0) return s.invalid("a key is repeated");
        self.seen |= bit;
    }

    fn hasAll(self: Fields, wanted: []const Field) bool {
        for (wanted) |field| {
            if (self.seen & (@as(u32, 1) << @intFromEnum(field)) == 0) return false;
        }
        return true;
    }
};

pub fn nonEmpty(s: *Scanner) json.Error![]const u8 {
    const value = try s.string();
    return if (value.len == 0) s.invalid("a text is empty") else value;
}

/// A hash: 1 to 200 characters that could stand as a file name.
fn plainName(s: *Scanner) json.Error![]const u8 {
    const value = try nonEmpty(s);
    var characters: usize = 0;
    for (value) |byte| {
        if (byte < 0x20 or byte == 0x7f or byte == '/' or byte == '\\') return s.invalid("a hash is no plain file name");
        if (byte & 0xC0 != 0x80) characters += 1;
    }
    if (value[0] == '.' or characters > 200) return s.invalid("a hash is no plain file name");
    return value;
}

pub const RawConst = struct { kind: ConstKind, value: u64 = 1, text: []const u8 = "" };

/// A constant of exactly one kind; a str keeps its text, for the caller to number.
pub fn readConst(s: *Scanner) json.Error!RawConst {
    const one_kind = "a constant is exactly one of {\"int\"}, {\"f32\"}, {\"bool\"}, {\"str\"}, {\"none\": true}";
    var found: ?RawConst = null;
    var first = true;
    try s.object();
    while (try s.member(&first)) |key| {
        if (found != null) return s.invalid(one_kind);
        if (eql(key, "int")) {
            const value = try s.integerIn(-(1 << 63), (1 << 64) - 1, "an int constant lies in [-2^63, 2^64)");
            found = if (value > max64)
                .{ .kind = .uint, .value = @intCast(value) }
            else
                .{ .kind = .int, .value = @bitCast(@as(i64, @intCast(value))) };
        } else if (eql(key, "f32")) {
            found = .{ .kind = .f32, .value = @intCast(try s.integerIn(0, (1 << 32) - 1, "f32 holds 32 bits")) };
        } else if (eql(key, "bool")) {
            found = .{ .kind = .bool, .value = @intFromBool(try s.boolean()) };
        } else if (eql(key, "str")) {
            found = .{ .kind = .str, .text = try s.string() };
        } else if (eql(key, "none")) {
            if (!try s.boolean()) return s.invalid("{\"none\": false} says nothing");
            found = .{ .kind = .none };
        } else return s.invalid(one_kind);
    }
    return found orelse s.invalid(one_kind);
}
