//! A strict scanner for the JSON of one message: RFC 8259 text, UTF-8, no half surrogate pairs.
//!
//! Two kinds of failure are kept apart. `error.Syntax` is text that is not JSON: the peer is broken.
//! `error.Invalid` is JSON that a capture or a launch may not contain; `why` says what.

const std = @import("std");

pub const Error = error{ Syntax, Invalid, OutOfMemory };

/// No capture or launch nests this deep; a deeper one would exhaust the stack.
const max_depth = 256;

pub const Scanner = struct {
    text: []const u8,
    at: usize = 0,
    /// Holds strings that had escapes; all others are slices of `text`.
    arena: std.mem.Allocator,
    why: []const u8 = "is not JSON",

    pub fn init(text: []const u8, arena: std.mem.Allocator) Scanner {
        return .{ .text = text, .arena = arena };
    }

    pub fn invalid(self: *Scanner, why: []const u8) Error {
        self.why = why;
        return error.Invalid;
    }

    fn syntax(self: *Scanner, why: []const u8) Error {
        self.why = why;
        return error.Syntax;
    }

    /// The next byte that is no white space, not consumed; 0 at the end.
    pub inline fn peek(self: *Scanner) u8 {
        while (self.at < self.text.len) : (self.at += 1) {
            const byte = self.text[self.at];
            if (byte > ' ') return byte;
            if (byte != ' ' and byte != '\t' and byte != '\n' and byte != '\r') return byte;
        }
        return 0;
    }

    pub fn expect(self: *Scanner, byte: u8) Error!void {
        if (self.peek() != byte) return self.syntax("is not JSON: another character was expected");
        self.at += 1;
    }

    pub fn end(self: *Scanner) Error!void {
        if (self.peek() != 0 or self.at < self.text.len) return self.syntax("has text after its JSON value");
    }

    /// Enters an object: `while (try s.member(&first)) |key| { ...the value... }`.
    pub fn object(self: *Scanner) Error!void {
        if (self.peek() != '{') return self.mismatch("an object was expected");
        self.at += 1;
    }

    pub inline fn member(self: *Scanner, first: *bool) Error!?[]const u8 {
        if (!try self.more(first, '}')) return null;
        if (self.peek() != '"') return self.syntax("is not JSON: a key was expected");
        const key = try self.string();
        try self.expect(':');
        return key;
    }

    pub fn array(self: *Scanner) Error!void {
        if (self.peek() != '[') return self.mismatch("a list was expected");
        self.at += 1;
    }

    pub inline fn item(self: *Scanner, first: *bool) Error!bool {
        return self.more(first, ']');
    }

    inline fn more(self: *Scanner, first: *bool, close: u8) Error!bool {
        const byte = self.peek();
        if (byte == close) {
            self.at += 1;
            return false;
        }
        if (first.*) {
            first.* = false;
            return true;
        }
        if (byte != ',') return self.syntax("is not JSON: a comma was expected");
        self.at += 1;
        // A comma must be followed by a member or an item, not by the closing bracket.
        if (self.peek() == close) return self.syntax("is not JSON: a comma before a closing bracket");
        return true;
    }

    /// The failure for a value of another type than the format wants; not JSON at all if it is no value.
    fn mismatch(self: *Scanner, why: []const u8) Error {
        const start = self.at;
        self.skip(0) catch |problem| return problem;
        self.at = start;
        return self.invalid(why);
    }

    pub fn string(self: *Scanner) Error![]const u8 {
        if (self.peek() != '"') return self.mismatch("text was expected");
        const start = self.at + 1;
        var at = start;
        var high: u8 = 0;
        while (at < self.text.len) : (at += 1) {
            const byte = self.text[at];
            high |= byte;
            if (byte == '"') {
                self.at = at + 1;
                const slice = self.text[start..at];
                if (high >= 0x80 and !std.unicode.utf8ValidateSlice(slice)) return self.syntax("is not UTF-8");
                return slice;
            }
            if (byte == '\\') return self.escaped(start);
            if (byte < 0x20) return self.syntax("is not JSON: a control character inside text");
        }
        return self.syntax("is not JSON: text without its closing quote");
    }

    fn escaped(self: *Scanner, start: usize) Error![]const u8 {
        var out: std.ArrayList(u8) = .empty;
        self.at = start;
        while (self.at < self.text.len) {
            const byte = self.text[self.at];
            self.at += 1;
            switch (byte) {
                '"' => {
                    if (!std.unicode.utf8ValidateSlice(out.items)) return self.syntax("is not UTF-8");
                    return out.items;
                },
                '\\' => try self.escape(&out),
                0...0x1f => return self.syntax("is not JSON: a control character inside text"),
                else => try out.append(self.arena, byte),
            }
        }
        return self.syntax("is not JSON: text without its closing quote");
    }

    fn escape(self: *Scanner, out: *std.ArrayList(u8)) Error!void {
        if (self.at >= self.text.len) return self.syntax("is not JSON: text without its closing quote");
        const byte = self.text[self.at];
        self.at += 1;
        const plain: u8 = switch (byte) {
            '"', '\\', '/' => byte,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                var code: u21 = try self.hex4();
                if (code >= 0xDC00 and code < 0xE000) return self.syntax("text holds half of a surrogate pair");
                if (code >= 0xD800 and code < 0xDC00) {
                    if (!std.mem.startsWith(u8, self.text[self.at..], "\\u"))
                        return self.syntax("text holds half of a surrogate pair");
                    self.at += 2;
                    const low = try self.hex4();
                    if (low < 0xDC00 or low >= 0xE000) return self.syntax("text holds half of a surrogate pair");
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                }
                var bytes: [4]u8 = undefined;
                const length = std.unicode.utf8Encode(code, &bytes) catch return self.syntax("is not UTF-8");
                return out.appendSlice(self.arena, bytes[0..length]);
            },
            else => return self.syntax("is not JSON: an unknown escape"),
        };
        try out.append(self.arena, plain);
    }

    fn hex4(self: *Scanner) Error!u21 {
        if (self.text.len - self.at < 4) return self.syntax("is not JSON: an escape cut short");
        var code: u21 = 0;
        for (self.text[self.at..][0..4]) |byte| {
            const digit = hexDigit(byte) orelse return self.syntax("is not JSON: an unknown escape");
            code = code * 16 + digit;
        }
        self.at += 4;
        return code;
    }

    /// The text of a number; `integral` says whether it has neither fraction nor exponent.
    fn number(self: *Scanner, integral: *bool) Error![]const u8 {
        _ = self.peek();
        const start = self.at;
        if (self.byteIs('-')) self.at += 1;
        const digits = self.at;
        self.digitRun();
        if (self.at == digits) return self.syntax("is not JSON: a value was expected");
        if (self.text[digits] == '0' and self.at > digits + 1) return self.syntax("is not JSON: a leading zero");
        integral.* = true;
        if (self.byteIs('.')) {
            integral.* = false;
            self.at += 1;
            const fraction = self.at;
            self.digitRun();
            if (self.at == fraction) return self.syntax("is not JSON: a fraction without digits");
        }
        if (self.byteIs('e') or self.byteIs('E')) {
            integral.* = false;
            self.at += 1;
            if (self.byteIs('+') or self.byteIs('-')) self.at += 1;
            const exponent = self.at;
            self.digitRun();
            if (self.at == exponent) return self.syntax("is not JSON: an exponent without digits");
        }
        return self.text[start..self.at];
    }

    inline fn byteIs(self: *Scanner, byte: u8) bool {
        return self.at < self.text.len and self.text[self.at] == byte;
    }

    inline fn digitRun(self: *Scanner) void {
        while (self.at < self.text.len and self.text[self.at] -% '0' < 10) self.at += 1;
    }

    /// A plain integer. One of more than 64 bits comes back saturated, far outside every range of the format.
    pub fn integer(self: *Scanner) Error!i128 {
        const byte = self.peek();
        if (byte != '-' and byte -% '0' >= 10) return self.mismatch("an integer was expected");
        var integral: bool = undefined;
        const text = try self.number(&integral);
        if (!integral) return self.invalid("a plain integer was expected");
        const negative = text[0] == '-';
        const digits = text[@intFromBool(negative)..];
        if (digits.len > 20) return if (negative) std.math.minInt(i128) else std.math.maxInt(i128);
        var value: i128 = 0;
        if (digits.len < 19) {
            var small: u64 = 0;
            for (digits) |digit| small = small * 10 + (digit - '0');
            value = small;
        } else for (digits) |digit| {
            value = value * 10 + (digit - '0');
        }
        return if (negative) -value else value;
    }

    pub fn integerIn(self: *Scanner, low: i128, high: i128, why: []const u8) Error!i128 {
        const value = try self.integer();
        return if (value < low or value > high) self.invalid(why) else value;
    }

    pub fn boolean(self: *Scanner) Error!bool {
        const byte = self.peek();
        if (byte != 't' and byte != 'f') return self.mismatch("true or false was expected");
        try self.word(if (byte == 't') "true" else "false");
        return byte == 't';
    }

    /// Consumes a null if one is next.
    pub fn isNull(self: *Scanner) Error!bool {
        if (self.peek() != 'n') return false;
        try self.word("null");
        return true;
    }

    fn word(self: *Scanner, expected: []const u8) Error!void {
        if (!std.mem.startsWith(u8, self.text[self.at..], expected)) return self.syntax("is not JSON: an unknown word");
        self.at += expected.len;
    }

    /// Skips one value, checking that it is JSON and that none of its objects repeats a key.
    pub fn skipUnique(self: *Scanner) Error!void {
        const start = self.at;
        try self.skip(0);
        const after = self.at;
        self.at = start;
        try self.unique();
        self.at = after;
    }

    /// Skips one value, checking only that it is JSON.
    pub fn skip(self: *Scanner, depth: usize) Error!void {
        if (depth > max_depth) return self.syntax("is nested too deeply");
        var first = true;
        switch (self.peek()) {
            '{' => {
                self.at += 1;
                while (try self.member(&first)) |_| try self.skip(depth + 1);
            },
            '[' => {
                self.at += 1;
                while (try self.item(&first)) try self.skip(depth + 1);
            },
            '"' => _ = try self.string(),
            't' => try self.word("true"),
            'f' => try self.word("false"),
            'n' => try self.word("null"),
            else => {
                var integral: bool = undefined;
                _ = try self.number(&integral);
            },
        }
    }

    fn unique(self: *Scanner) Error!void {
        var first = true;
        switch (self.peek()) {
            '{' => {
                self.at += 1;
                var keys: Keys = .{};
                while (try self.member(&first)) |key| {
                    try keys.add(self, key);
                    try self.unique();
                }
            },
            '[' => {
                self.at += 1;
                while (try self.item(&first)) try self.unique();
            },
            else => try self.skip(0),
        }
    }
};

/// The keys that an object has shown, so that a repeated one is refused.
pub const Keys = struct {
    seen: std.StringHashMapUnmanaged(void) = .empty,

    pub fn add(self: *Keys, scanner: *Scanner, key: []const u8) Error!void {
        const entry = try self.seen.getOrPut(scanner.arena, key);
        if (entry.found_existing) return scanner.invalid("a key is repeated");
    }
};

pub fn hexDigit(byte: u8) ?u4 {
    return switch (byte) {
        '0'...'9' => @intCast(byte - '0'),
        'a'...'f' => @intCast(byte - 'a' + 10),
        'A'...'F' => @intCast(byte - 'A' + 10),
        else => null,
    };
}

pub inline fn eql(a: []const u8, comptime b: []const u8) bool {
    return a.len == b.len and std.mem.eql(u8, a, b);
}
