"""The grammar of PTX as Triton emits it, for lark. What it does not cover is an error with its line, never skipped."""

from __future__ import annotations

GRAMMAR = r"""
start: item*
?item: version | target | address_size | FILE | SECTION | variable | entry
version: ".version" FLOATNUM
target: ".target" NAME ("," NAME)*
address_size: ".address_size" INT
variable: LINKAGE* SPACE ALIGN? TYPE NAME ("[" INT? "]")? INIT? ";"
entry: LINKAGE* ".entry" NAME "(" [param ("," param)*] ")" DIRECTIVE* "{" stmt* "}"
param: ".param" (ALIGN | TYPE | PTR | SPACE)* NAME ("[" INT "]")?
?stmt: declare | variable | loc | FILE | PRAGMA | label | block | instr
declare: ".reg" TYPE regname ("," regname)* ";"
regname: (REG | NAME) ["<" INT ">"]
loc: LOC
label: LABELDEF
block: "{" stmt* "}"
instr: [guard] OPCODE [operand ("," operand)*] ";"
guard: GUARD
?operand: reg | integer | real | sym | mem | vec | split
split: REG "|" REG
reg: REG
integer: INT
real: FLOAT
sym: NAME
mem: "[" base ["+" INT] ("," vec)? "]"
?base: reg | sym | integer
vec: "{" [operand ("," operand)*] "}"

LINKAGE: ".extern" | ".visible" | ".weak" | ".common"
SPACE: ".shared" | ".global" | ".const" | ".local"
ALIGN: /\.align\s+\d+/
PTR: ".ptr"
INIT: /=\s*(?:\{[^}]*\}|[^;]*)/
TYPE: /\.(?:[bsuf](?:8|16|32|64|128)|pred)\b/
DIRECTIVE: /\.(?:req|max|min)(?:ntid|nctapersm|nreg|nctapercluster|clusterrank)(?:[ \t]+\d+(?:[ \t]*,[ \t]*\d+)*)?/
    | ".explicitcluster" | ".noreturn"
FILE: /\.file[^\n]*/
LOC: /\.loc[^\n]*/
PRAGMA: /\.pragma[^;]*;/
SECTION: /\.section[^{]*\{[^}]*\}/
LABELDEF.2: /[A-Za-z_$][\w$]*:(?!:)/
GUARD: /@!?%[\w$]+/
FLOATNUM: /\d+\.\d+/
FLOAT.2: /0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}/
INT: /-?(?:0[xX][0-9a-fA-F]+|\d+)U?/
REG: /%[\w$]+(?:\.[xyzw])?/
OPCODE: /[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)*/
NAME: /[A-Za-z_$][\w$]*/
COMMENT: /\/\/[^\n]*/
BLOCK_COMMENT: /\/\*[\s\S]*?\*\//
%ignore /\s+/
%ignore COMMENT
%ignore BLOCK_COMMENT
"""
