//! The selector behind the protocol `foldproof-selector/1`: NDJSON on standard input and output.

const std = @import("std");
const json = @import("json.zig");
const capture = @import("capture.zig");
const rules = @import("rules.zig");
const Reader = @import("launch.zig").Reader;

// The C library's read and write: the same in every release of Zig.
extern "c" fn read(fd: c_int, buffer: [*]u8, length: usize) isize;
extern "c" fn write(fd: c_int, buffer: [*]const u8, length: usize) isize;

/// A check that fails ends the process with its message, without the stack trace that would double the build.
pub const panic = std.debug.simple_panic;

const gpa = std.heap.c_allocator;
const hello = "{\"type\":\"hello\",\"protocol\":\"foldproof-selector/1\",\"name\":\"zig-three-pass\"," ++
    "\"kinds\":[\"i32\",\"i64\",\"u64\",\"u1\",\"fp32\",\"none\",\"ptr\"]}\n";

pub export fn main(_: c_int, _: [*]const [*:0]const u8) callconv(.c) c_int {
    rules.plant();
    var session: Session = .{ .reader = .{ .gpa = gpa }, .scratch = std.heap.ArenaAllocator.init(gpa) };
    session.run() catch |problem| switch (problem) {
        error.Ended => return 0,
        error.Protocol => return 2,
        error.OutOfMemory => {
            complain("out of memory");
            return 1;
        },
    };
    return 0;
}

const Failure = error{ OutOfMemory, Protocol, Ended };

const Session = struct {
    reader: Reader,
    scratch: std.heap.ArenaAllocator,
    captures: std.AutoHashMapUnmanaged(i128, *capture.Capture) = .empty,
    out: std.ArrayList(u8) = .empty,
    buffer: []u8 = &.{},
    filled: usize = 0,

    fn run(self: *Session) Failure!void {
        try put(hello);
        self.buffer = try gpa.alloc(u8, 1 << 20);
        while (true) {
            if (self.filled == self.buffer.len) self.buffer = try gpa.realloc(self.buffer, self.buffer.len * 2);
            const count = read(0, self.buffer.ptr + self.filled, self.buffer.len - self.filled);
            if (count <= 0) return;
            const unsearched = self.filled;
            self.filled += @intCast(count);
            try self.lines(unsearched);
            // Everything that was read is answered before more is awaited.
            try self.flush();
        }
    }

    fn lines(self: *Session, unsearched: usize) Failure!void {
        const text = self.buffer[0..self.filled];
        var start: usize = 0;
        var from = unsearched;
        while (std.mem.indexOfScalarPos(u8, text, from, '\n')) |end| {
            if (end > start) try self.message(text[start..end]);
            start = end + 1;
            from = start;
        }
        if (start == 0) return;
        self.filled = text.len - start;
        std.mem.copyForwards(u8, self.buffer[0..self.filled], text[start..]);
    }

    fn message(self: *Session, line: []const u8) Failure!void {
        var s = json.Scanner.init(line, self.scratch.allocator());
        defer _ = self.scratch.reset(.retain_capacity);
        self.dispatch(&s) catch |problem| switch (problem) {
            error.Syntax, error.Invalid => {
                complain(s.why);
                return error.Protocol;
            },
            error.OutOfMemory => return error.OutOfMemory,
            error.Ended => return error.Ended,
            error.Protocol => return error.Protocol,
        };
    }

    fn dispatch(self: *Session, s: *json.Scanner) (json.Error || Failure)!void {
        var kind: ?[]const u8 = null;
        var id: ?i128 = null;
        var of: ?i128 = null;
        var added: ?*capture.Capture = null;
        var launch: ?bool = null;
        var seen: json.Keys = .{};
        var first = true;
        try s.object();
        while (try s.member(&first)) |key| {
            if (json.eql(key, "type")) {
                if (kind != null) return s.invalid("a message repeats its type");
                kind = try s.string();
            } else if (json.eql(key, "id")) {
                if (id != null) return s.invalid("a message repeats its id");
                id = try s.integer();
            } else if (json.eql(key, "capture")) {
                if (of != null) return s.invalid("a message repeats its capture");
                of = try s.integer();
            } else if (json.eql(key, "launch")) {
                if (launch != null) return s.invalid("a message repeats its launch");
                launch = try valid(s, Reader.read, &self.reader);
            } else if (json.eql(key, "kernels")) {
                if (added != null) return s.invalid("a message repeats its kernels");
                added = try readCapture(s);
            } else {
                try seen.add(s, key);
                try s.skip(0);
            }
        }
        try s.end();
        const said = kind orelse return s.invalid("a message has no type");
        if (json.eql(said, "capture")) {
            const number = id orelse return s.invalid("a capture has no id");
            const entry = try self.captures.getOrPut(gpa, number);
            if (entry.found_existing) entry.value_ptr.*.deinit();
            entry.value_ptr.* = added orelse try capture.broken(gpa, "a capture has no kernels");
        } else if (json.eql(said, "launch")) {
            try self.answer(
                id orelse return s.invalid("a launch has no id"),
                self.captures.get(of orelse return s.invalid("a launch names no capture")),
                launch orelse return s.invalid("a launch message holds no launch"),
            );
        } else if (added) |unused| unused.deinit();
    }

    fn answer(self: *Session, id: i128, known: ?*capture.Capture, valid_launch: bool) Failure!void {
        const of = known orelse return self.refuse(id, "InvalidCapture");
        if (of.fault != null) return self.refuse(id, "InvalidCapture");
        if (!valid_launch) return self.refuse(id, "InvalidLaunch");
        const launch = try self.reader.resolve(of);
        const selection = rules.select(of, launch) orelse return self.refuse(id, "MissingTritonVariant");
        try self.print("{{\"id\":{d},\"pick\":{d},\"pass\":\"{s}\",\"log\":[", .{
            id, selection.index, selection.strictness.word(),
        });
        if (selection.strictness == .runtime_one) try self.logLine(of, launch, selection);
        try self.out.appendSlice(gpa, "]}\n");
        if (self.out.items.len > 1 << 16) try self.flush();
    }

    fn refuse(self: *Session, id: i128, word: []const u8) Failure!void {
        try self.print("{{\"id\":{d},\"pick\":null,\"error\":\"{s}\"}}\n", .{ id, word });
    }

    /// The log line of a fallback, naming the args that the variant reads although they are 1.
    fn logLine(self: *Session, of: *const capture.Capture, launch: *const rules.Launch, selection: rules.Selection) Failure!void {
        try self.out.appendSlice(gpa, "\"aot: ");
        try self.escaped(self.reader.@"fn");
        try self.out.appendSlice(gpa, " runs variant ");
        try self.escaped(of.variants[selection.index].hash);
        try self.out.appendSlice(gpa, ", its 1 read at runtime (the capture holds no folded variant of it)");
        var mark: []const u8 = ": ";
        for (launch.args, 0..) |*arg, position| {
            if (!rules.readsOne(of, launch, selection, arg)) continue;
            try self.out.appendSlice(gpa, mark);
            try self.escaped(self.reader.argName(position));
            mark = ", ";
        }
        try self.out.append(gpa, '"');
    }

    fn escaped(self: *Session, text: []const u8) Failure!void {
        for (text) |byte| switch (byte) {
            '"', '\\' => try self.out.appendSlice(gpa, &.{ '\\', byte }),
            0...0x1f => try self.print("\\u{x:0>4}", .{byte}),
            else => try self.out.append(gpa, byte),
        };
    }

    fn print(self: *Session, comptime format: []const u8, values: anytype) Failure!void {
        // Long enough for every format here: two integers and a word.
        var space: [160]u8 = undefined;
        const text = std.fmt.bufPrint(&space, format, values) catch unreachable;
        try self.out.appendSlice(gpa, text);
    }

    fn flush(self: *Session) Failure!void {
        try put(self.out.items);
        self.out.clearRetainingCapacity();
    }
};

/// Reads a value that may be invalid; then it is skipped as JSON and false returned.
fn valid(s: *json.Scanner, comptime action: anytype, target: anytype) json.Error!bool {
    _ = s.peek();
    const start = s.at;
    action(target, s) catch |problem| {
        if (problem != error.Invalid) return problem;
        s.at = start;
        try s.skip(0);
        return false;
    };
    return true;
}

fn readCapture(s: *json.Scanner) json.Error!*capture.Capture {
    _ = s.peek();
    const start = s.at;
    return capture.read(gpa, s) catch |problem| {
        if (problem != error.Invalid) return problem;
        const why = s.why;
        s.at = start;
        try s.skip(0);
        return capture.broken(gpa, why);
    };
}

fn put(text: []const u8) Failure!void {
    var rest = text;
    while (rest.len > 0) {
        const count = write(1, rest.ptr, rest.len);
        if (count <= 0) return error.Ended;
        rest = rest[@intCast(count)..];
    }
}

fn complain(why: []const u8) void {
    const head = "foldproof-selector: a message ";
    _ = write(2, head, head.len);
    _ = write(2, why.ptr, why.len);
    _ = write(2, "\n", 1);
}
