/* Rows are written with ' for ", so that schemas can be read. */
#include "mo_test.h"

#include "codec/json/jregex.h"
#include "codec/json/jschema.h"
#include "codec/text/utf8.h"

/* The text with " for ', as a value that lives in b. */
static struct mo_json json(struct mo_buf *b, const char *text)
{
    struct mo_json_doc doc;
    struct mo_err e = {0};

    mo_buf_reset(b);
    mo_buf_puts(b, text);
    for (size_t i = 0; i < b->len; i++) {
        if (b->p[i] == '\'')
            b->p[i] = '"';
    }
    if (mo_json_parse(mo_buf_view(b), 0, &doc, &e) < 0)
        fail_msg("not JSON: %s: %s", text, e.msg);
    return doc.root;
}

struct row {
    const char *schema, *value;
    const char *error; /* NULL: valid; else what the first line says */
    unsigned notes;
};

#define OBJ_A                                                                  \
    "{'type':'object','properties':{'a':{'type':'integer'}},"                  \
    "'required':['a'],'additionalProperties':false}"
#define TREE                                                                   \
    "{'$ref':'#/$defs/n','$defs':{'n':{'type':'object','properties':{"         \
    "'v':{'type':'number'},'kids':{'type':'array','items':"                    \
    "{'$ref':'#/$defs/n'}}},'required':['v']}}}"

static const struct row rows[] = {
    /* boolean and empty schemas */
    {"true", "1", NULL},
    {"false", "1", "value: is not allowed here"},
    {"{}", "{'any':[1,null]}", NULL},
    {"{'title':'x','description':'y','default':3,'$comment':'z'}", "'s'", NULL},
    {"3", "1", NULL, MO_JSCHEMA_BAD_SCHEMA},
    /* type */
    {"{'type':'string'}", "'a'", NULL},
    {"{'type':'string'}", "1", "value: must be a string, not a number"},
    {"{'type':'string'}", "null", "value: must be a string, not null"},
    {"{'type':'integer'}", "1", NULL},
    {"{'type':'integer'}", "1.0", NULL},
    {"{'type':'integer'}", "-1.50e1", NULL},
    {"{'type':'integer'}", "1e400", NULL},
    {"{'type':'integer'}", "0.0", NULL},
    {"{'type':'integer'}", "1.5", "value: must be an integer, not a number"},
    {"{'type':'integer'}", "1e-1", "value: must be an integer, not a number"},
    {"{'type':'integer'}", "'1'", "value: must be an integer, not a string"},
    {"{'type':'number'}", "1.5", NULL},
    {"{'type':'number'}", "true", "value: must be a number, not a boolean"},
    {"{'type':'boolean'}", "false", NULL},
    {"{'type':'boolean'}", "0", "value: must be true or false, not a number"},
    {"{'type':'null'}", "null", NULL},
    {"{'type':'null'}", "''", "value: must be null, not a string"},
    {"{'type':'array'}", "[]", NULL},
    {"{'type':'array'}", "{}", "value: must be an array, not an object"},
    {"{'type':'object'}", "{}", NULL},
    {"{'type':'object'}", "[]", "value: must be an object, not an array"},
    {"{'type':['string','null']}", "null", NULL},
    {"{'type':['string','null']}", "1",
     "value: must be a string or null, not a number"},
    {"{'type':['string','integer','null']}", "1.5",
     "value: must be a string, an integer or null, not a number"},
    {"{'type':'strnig'}", "1", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'type':[]}", "1", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'type':['string','odd']}", "1", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'\\u0074ype':'string'}", "1", "value: must be a string, not a number"},
    /* enum and const */
    {"{'enum':['a','b']}", "'b'", NULL},
    {"{'enum':['a','b']}", "'c'", "value: must be one of \"a\", \"b\""},
    {"{'enum':['a']}", "'\\u0061'", NULL},
    {"{'enum':[1,2]}", "1.0", NULL},
    {"{'enum':[1,2]}", "'1'", "value: must be one of 1, 2"},
    {"{'enum':[null]}", "false", "value: must be one of null"},
    {"{'enum':[]}", "1", "value: must be one of "},
    {"{'enum':'a'}", "1", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'const':{'a':1,'b':[2]}}", "{'b':[2.0],'a':1e0}", NULL},
    {"{'const':{'a':1}}", "{'a':1,'b':2}", "value: must be {\"a\":1}"},
    {"{'const':[1,2]}", "[2,1]", "value: must be [1,2]"},
    {"{'const':[1,2]}", "[1]", "value: must be [1,2]"},
    {"{'const':12345678901234567890123}", "12345678901234567890123", NULL},
    {"{'const':12345678901234567890123}", "12345678901234567890124",
     "value: must be 12345678901234567890123"},
    {"{'const':0}", "-0.0", NULL},
    {"{'const':100}", "1e2", NULL},
    {"{'const':false}", "0", "value: must be false"},
    {"{'const':'\\ud83d\\ude00'}", "'\xf0\x9f\x98\x80'", NULL},
    /* numbers */
    {"{'minimum':3}", "3", NULL},
    {"{'minimum':3}", "2.9999999999999999999", "value: must be at least 3"},
    {"{'minimum':-3}", "-4", "value: must be at least -3"},
    {"{'minimum':3}", "'a'", NULL},
    {"{'maximum':3}", "3.0", NULL},
    {"{'maximum':3}", "30e-1", NULL},
    {"{'maximum':3}", "3.01", "value: must be at most 3"},
    {"{'maximum':9007199254740993}", "9007199254740994",
     "value: must be at most 9007199254740993"},
    {"{'maximum':1e308}", "1e309", "value: must be at most 1e308"},
    {"{'exclusiveMinimum':0}", "0", "value: must be more than 0"},
    {"{'exclusiveMinimum':0}", "1e-400", NULL},
    {"{'exclusiveMaximum':10}", "10", "value: must be less than 10"},
    {"{'exclusiveMaximum':10}", "9.99", NULL},
    {"{'minimum':1,'exclusiveMinimum':true}", "1",
     "value: must be more than 1"},
    {"{'maximum':1,'exclusiveMaximum':true}", "1",
     "value: must be less than 1"},
    {"{'maximum':1,'exclusiveMaximum':false}", "1", NULL},
    {"{'minimum':'3'}", "1", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'multipleOf':0.1}", "0.3", NULL},
    {"{'multipleOf':0.01}", "19.99", NULL},
    {"{'multipleOf':0.01}", "19.999", "value: must be a multiple of 0.01"},
    {"{'multipleOf':3}", "9", NULL},
    {"{'multipleOf':3}", "10", "value: must be a multiple of 3"},
    {"{'multipleOf':3}", "300000000000000000000000000000", NULL},
    {"{'multipleOf':7}", "1e300", "value: must be a multiple of 7"},
    {"{'multipleOf':8}", "1e3", NULL},
    {"{'multipleOf':2.5}", "-7.5", NULL},
    {"{'multipleOf':5}", "0", NULL},
    {"{'multipleOf':0}", "5", NULL, MO_JSCHEMA_DIVISOR},
    {"{'multipleOf':1.2345678901234567891}", "5", NULL, MO_JSCHEMA_DIVISOR},
    /* strings */
    {"{'minLength':2}", "'ab'", NULL},
    {"{'minLength':2}", "'a'", "value: must have at least 2 characters, has 1"},
    {"{'minLength':1}", "''", "value: must have at least 1 character, has 0"},
    {"{'maxLength':2}", "'\xc3\xa9\xe2\x82\xac'", NULL},
    {"{'maxLength':1}", "'\\ud83d\\ude00'", NULL},
    {"{'maxLength':1}", "'\\ud83dx'",
     "value: must have at most 1 character, has 2"},
    {"{'maxLength':2.0}", "'abc'",
     "value: must have at most 2 characters, has 3"},
    {"{'maxLength':-1}", "'abc'", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'maxLength':2}", "12345", NULL},
    {"{'pattern':'^[a-z]+$'}", "'abc'", NULL},
    {"{'pattern':'^[a-z]+$'}", "'aBc'",
     "value: must match the pattern \"^[a-z]+$\""},
    {"{'pattern':'b'}", "'abc'", NULL},
    {"{'pattern':'(?=x)'}", "'abc'", NULL, MO_JSCHEMA_PATTERN},
    {"{'pattern':'('}", "'abc'", NULL, MO_JSCHEMA_PATTERN},
    {"{'pattern':5}", "'abc'", NULL, MO_JSCHEMA_PATTERN},
    {"{'format':'date'}", "'2024-02-29'", NULL},
    {"{'format':'date'}", "'2023-02-29'", "value: must be written as date"},
    {"{'format':'date-time'}", "'2024-01-01T00:00:00Z'", NULL},
    {"{'format':'email'}", "'nobody'", "value: must be written as email"},
    {"{'format':'no-such'}", "'x'", NULL},
    {"{'format':'uri'}", "7", NULL},
    /* objects */
    {OBJ_A, "{'a':1}", NULL},
    {OBJ_A, "{}", "value.a: is required"},
    {OBJ_A, "{'a':'1'}", "value.a: must be an integer, not a string"},
    {OBJ_A, "{'a':1,'b':2}", "value.b: is not a known member"},
    {OBJ_A, "{'\\u0061':1}", NULL},
    {OBJ_A, "[]", "value: must be an object, not an array"},
    {"{'properties':{'a':false}}", "{'a':1}", "value.a: is not allowed here"},
    {"{'properties':{'a':true}}", "{'a':1}", NULL},
    {"{'properties':[]}", "{'a':1}", NULL},
    {"{'required':['x','y']}", "{'y':1}", "value.x: is required"},
    {"{'required':['a b']}", "{}", "value[\"a b\"]: is required"},
    {"{'required':true}", "{}", NULL},
    {"{'additionalProperties':{'type':'string'}}", "{'q':'1'}", NULL},
    {"{'additionalProperties':{'type':'string'}}", "{'q':1}",
     "value.q: must be a string, not a number"},
    {"{'additionalProperties':true}", "{'q':1}", NULL},
    {"{'properties':{'a':{}},'additionalProperties':false}", "{'a':1}", NULL},
    {"{'patternProperties':{'^x-':{'type':'string'}}}", "{'x-a':'1','b':2}",
     NULL},
    {"{'patternProperties':{'^x-':{'type':'string'}}}", "{'x-a':1}",
     "value.x-a: must be a string, not a number"},
    {"{'patternProperties':{'^x-':{}},'additionalProperties':false}",
     "{'x-a':1}", NULL},
    {"{'patternProperties':{'^x-':{}},'additionalProperties':false}",
     "{'y-a':1}", "value.y-a: is not a known member"},
    {"{'patternProperties':{'(?<=q)x':{}},'additionalProperties':false}",
     "{'y-a':1}", NULL, MO_JSCHEMA_PATTERN},
    {"{'patternProperties':[1]}", "{'a':1}", NULL},
    {"{'minProperties':1}", "{}", "value: must have at least 1 member, has 0"},
    {"{'maxProperties':1}", "{'a':1,'b':2}",
     "value: must have at most 1 member, has 2"},
    {"{'propertyNames':{'maxLength':2}}", "{'ab':1}", NULL},
    {"{'propertyNames':{'maxLength':2}}", "{'abc':1}",
     "value.abc: is not a name allowed here"},
    {"{'dependentRequired':{'card':['name']}}", "{'name':1}", NULL},
    {"{'dependentRequired':{'card':['name']}}", "{'card':1}",
     "value.name: is required with \"card\""},
    {"{'dependentSchemas':{'a':{'required':['b']}}}", "{'a':1}",
     "value.b: is required"},
    {"{'dependencies':{'a':['b']}}", "{'a':1}",
     "value.b: is required with \"a\""},
    {"{'dependencies':{'a':{'minProperties':2}}}", "{'a':1}",
     "value: must have at least 2 members, has 1"},
    /* arrays */
    {"{'items':{'type':'string'}}", "['a','b']", NULL},
    {"{'items':{'type':'string'}}", "['a',1]",
     "value[1]: must be a string, not a number"},
    {"{'items':false}", "[]", NULL},
    {"{'items':false}", "[1]", "value[0]: is not allowed here"},
    {"{'prefixItems':[{'type':'string'},{'type':'number'}]}", "['a',1,{}]",
     NULL},
    {"{'prefixItems':[{'type':'string'},{'type':'number'}]}", "['a','b']",
     "value[1]: must be a number, not a string"},
    {"{'prefixItems':[{'type':'string'}]}", "[]", NULL},
    {"{'prefixItems':[{}],'items':false}", "[1,2]",
     "value[1]: is not allowed here"},
    {"{'prefixItems':[{}],'items':{'type':'null'}}", "[1,null]", NULL},
    {"{'items':[{'type':'string'}]}", "[1]",
     "value[0]: must be a string, not a number"},
    {"{'items':[{}],'additionalItems':false}", "[1,2]",
     "value[1]: is not allowed here"},
    {"{'items':[{}],'additionalItems':false}", "[1]", NULL},
    {"{'items':{},'additionalItems':false}", "[1,2]", NULL},
    {"{'minItems':1}", "[]", "value: must have at least 1 item, has 0"},
    {"{'maxItems':1}", "[1,2]", "value: must have at most 1 item, has 2"},
    {"{'maxItems':2}", "[1,2]", NULL},
    {"{'uniqueItems':true}", "[1,2,3]", NULL},
    {"{'uniqueItems':true}", "[1,2,1.0]",
     "value[0]: stands in the array twice"},
    {"{'uniqueItems':true}", "['a','\\u0061']",
     "value[0]: stands in the array twice"},
    {"{'uniqueItems':true}", "[{'a':1,'b':2},{'b':2,'a':1}]",
     "value[0]: stands in the array twice"},
    {"{'uniqueItems':true}", "[1,true,'1',[1],{'1':1},null,false,0]", NULL},
    {"{'uniqueItems':false}", "[1,1]", NULL},
    {"{'contains':{'const':1}}", "[2,1]", NULL},
    {"{'contains':{'const':1}}", "[2]",
     "value: must have 1 item of the wanted form"},
    {"{'contains':{'const':1},'minContains':0}", "[2]", NULL},
    {"{'contains':{'const':1},'minContains':2}", "[1,2]",
     "value: must have 2 items of the wanted form"},
    {"{'contains':{'const':1},'maxContains':1}", "[1,1]",
     "value: has too many items of one form"},
    /* combinations */
    {"{'allOf':[{'type':'number'},{'minimum':2}]}", "3", NULL},
    {"{'allOf':[{'type':'number'},{'minimum':2}]}", "1",
     "value: must be at least 2"},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", "null", NULL},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", "1",
     "value: must be a string or null, not a number"},
    {"{'anyOf':[{'type':'string','minLength':2},{'type':'null'}]}", "'a'",
     "value: must have at least 2 characters, has 1"},
    {"{'anyOf':[{'const':1},{'const':2}]}", "3",
     "value: fits none of the allowed forms"},
    {"{'anyOf':[]}", "3", NULL, MO_JSCHEMA_BAD_SCHEMA},
    {"{'oneOf':[{'multipleOf':2},{'multipleOf':3}]}", "4", NULL},
    {"{'oneOf':[{'multipleOf':2},{'multipleOf':3}]}", "6",
     "value: fits several forms, must fit exactly one"},
    {"{'oneOf':[{'multipleOf':2},{'multipleOf':3}]}", "7",
     "value: fits none of the allowed forms"},
    {"{'oneOf':[{'$ref':'http://x/y'},{'type':'number'}]}", "7", NULL,
     MO_JSCHEMA_REMOTE_REF},
    {"{'not':{'type':'string'}}", "1", NULL},
    {"{'not':{'type':'string'}}", "'a'",
     "value: has a form that is forbidden here"},
    {"{'not':{'$ref':'other.json'}}", "'a'", NULL, MO_JSCHEMA_REMOTE_REF},
    {"{'not':{}}", "1", "value: has a form that is forbidden here"},
    {"{'if':{'const':1},'then':{'type':'string'}}", "1",
     "value: must be a string, not a number"},
    {"{'if':{'const':1},'then':{'type':'string'}}", "2", NULL},
    {"{'if':{'const':1},'else':{'type':'string'}}", "2",
     "value: must be a string, not a number"},
    {"{'if':{'$ref':'x:y'},'then':false}", "2", NULL, MO_JSCHEMA_REMOTE_REF},
    {"{'then':false}", "2", NULL},
    /* references */
    {TREE, "{'v':1,'kids':[{'v':2},{'v':3,'kids':[]}]}", NULL},
    {TREE, "{'v':1,'kids':[{'v':2},{'kids':[]}]}",
     "value.kids[1].v: is required"},
    {"{'$ref':'#/definitions/s','definitions':{'s':{'type':'string'}}}", "1",
     "value: must be a string, not a number"},
    {"{'properties':{'c':{'$ref':'#'}},'additionalProperties':false}",
     "{'c':{'c':{}}}", NULL},
    {"{'properties':{'c':{'$ref':'#'}},'additionalProperties':false}",
     "{'c':{'d':{}}}", "value.c.d: is not a known member"},
    {"{'$ref':'#/$defs/a~1b%25','$defs':{'a/b%':{'type':'null'}}}", "1",
     "value: must be null, not a number"},
    {"{'$ref':'#/$defs/~01','$defs':{'~1':{'type':'null'}}}", "1",
     "value: must be null, not a number"},
    {"{'$ref':'#/prefixItems/1','prefixItems':[{},{'type':'null'}]}", "1",
     "value: must be null, not a number"},
    {"{'$ref':'#s','$defs':{'x':{'$anchor':'s','type':'string'}}}", "1",
     "value: must be a string, not a number"},
    {"{'$ref':'#s','definitions':{'x':{'$id':'#s','type':'string'}}}", "1",
     "value: must be a string, not a number"},
    {"{'$id':'http://a/b','$ref':'http://a/b#/$defs/n','$defs':{'n':false}}",
     "1", "value: is not allowed here"},
    {"{'$ref':'#/nowhere'}", "1", NULL, MO_JSCHEMA_LOST_REF},
    {"{'$ref':'#nowhere'}", "1", NULL, MO_JSCHEMA_LOST_REF},
    {"{'$ref':'#/a%2'}", "1", NULL, MO_JSCHEMA_LOST_REF},
    {"{'$ref':5}", "1", NULL, MO_JSCHEMA_LOST_REF},
    {"{'$ref':'https://example.com/s.json'}", "1", NULL, MO_JSCHEMA_REMOTE_REF},
    {"{'$ref':'https://example.com/s.json','type':'string'}", "1",
     "value: must be a string, not a number", MO_JSCHEMA_REMOTE_REF},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','$ref':'#/$defs/a',"
     "'maxItems':1,'$defs':{'a':{'type':'array'}}}",
     "[1,2]", NULL},
    {"{'$schema':'https://json-schema.org/draft/2020-12/schema',"
     "'$ref':'#/$defs/a','maxItems':1,'$defs':{'a':{'type':'array'}}}",
     "[1,2]", "value: must have at most 1 item, has 2"},
    {"{'$dynamicRef':'#x'}", "1", NULL, MO_JSCHEMA_KEYWORD},
    {"{'unevaluatedProperties':false}", "{'a':1}", NULL, MO_JSCHEMA_KEYWORD},
    /* what servers really send */
    {"{'$schema':'http://json-schema.org/draft-07/schema#','type':'object',"
     "'properties':{'path':{'type':'string'},'head':{'type':'number'}},"
     "'required':['path'],'additionalProperties':false}",
     "{'path':7}", "value.path: must be a string, not a number"},
    {"{'type':'object','properties':{'edits':{'type':'array','items':{"
     "'type':'object','properties':{'old':{'type':'string'}},"
     "'required':['old']}}}}",
     "{'edits':[{'old':'a'},{'new':'b'}]}", "value.edits[1].old: is required"},
};

static void table(void **state)
{
    static struct mo_jschema_result r;
    struct mo_jschema_opts o = {.formats = true};
    struct mo_buf sb, vb, text;

    (void)state;
    mo_buf_init(&sb, 1 << 16);
    mo_buf_init(&vb, 1 << 16);
    mo_buf_init(&text, 1 << 16);
    assert_true(MO_COUNT(rows) >= 150);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json schema = json(&sb, rows[i].schema);
        struct mo_json value = json(&vb, rows[i].value);
        struct mo_span want = mo_span_cstr(rows[i].error), got;
        char name[400];

        snprintf(name, sizeof(name), "%s %s", rows[i].schema, rows[i].value);
        check_row(name, mo_jschema_check(schema, value, &o, &r, NULL) == 0);
        check_row(name, r.valid == !rows[i].error);
        check_row(name, r.valid == (r.nerrors == 0));
        check_row(name, r.notes == rows[i].notes);
        mo_buf_reset(&text);
        check_row(name, mo_jschema_put(&text, &r) == 0);
        got = mo_buf_view(&text);
        got = mo_span_cut(&got, '\n');
        if (rows[i].error && !mo_span_eq(got, want))
            fail_msg("row '%s': says '%.*s'", name, (int)got.n, got.p);
    }
    mo_buf_fini(&sb);
    mo_buf_fini(&vb);
    mo_buf_fini(&text);
}

/* --- patterns ------------------------------------------------------------ */

static const struct {
    const char *pattern, *text;
    int found; /* 1, 0, or MO_EINVAL: not ours */
} patterns[] = {
    {"", "", 1},
    {"", "abc", 1},
    {"a", "bab", 1},
    {"a", "", 0},
    {"^a", "ba", 0},
    {"a$", "ba", 1},
    {"a$", "ab", 0},
    {"^$", "", 1},
    {"^$", "x", 0},
    {".", "\\n", 0},
    {"^.$", "\xf0\x9f\x98\x80", 1},
    {"^a|b$", "xb", 1},
    {"^(a|b|cd)$", "cd", 1},
    {"^(a|b|cd)$", "c", 0},
    {"^(?:a|)$", "", 1},
    {"^(?<year>\\\\d{4})-x$", "2024-x", 1},
    {"^a*$", "aaaa", 1},
    {"^a+$", "", 0},
    {"^a?b$", "b", 1},
    {"^a{2}$", "aa", 1},
    {"^a{2}$", "aaa", 0},
    {"^a{2,}$", "aaaaa", 1},
    {"^a{2,}$", "a", 0},
    {"^a{2,4}$", "aaa", 1},
    {"^a{2,4}$", "aaaaa", 0},
    {"^a{0,2}$", "aa", 1},
    {"^a{0,2}$", "aaa", 0},
    {"^a{0}b$", "b", 1},
    {"^a{0}b$", "ab", 0},
    {"^(ab){2,3}$", "ababab", 1},
    {"^(ab){2,3}$", "abababab", 0},
    {"^(a|bc){0,3}$", "abca", 1},
    {"^a+?b$", "aab", 1},
    {"^(a*)*$", "aaa", 1},
    {"^(a*)*b$", "aaac", 0},
    {"^((a?)+)+$", "aa", 1},
    {"a{,2}", "a{,2}", 1},
    {"^[abc]+$", "cab", 1},
    {"^[^abc]+$", "xyz", 1},
    {"^[^abc]+$", "xaz", 0},
    {"^[a-cx-z_]+$", "ay_", 1},
    {"^[-a]+$", "a-a", 1},
    {"^[a-]+$", "a-a", 1},
    {"^[\\\\w.-]+$", "a_9.-", 1},
    {"^[\\\\D]+$", "abc", 1},
    {"^[\\\\D]+$", "ab1", 0},
    {"^[\\\\]]$", "]", 1},
    {"[]", "a", 0},
    {"^[^]$", "a", 1},
    {"^\\\\d+$", "0123", 1},
    {"^\\\\d+$", "12a", 0},
    {"^\\\\D$", "\xc3\xa9", 1},
    {"^\\\\s$", "\\u00a0", 1},
    {"^\\\\S+$", "a b", 0},
    {"\\\\bfoo\\\\b", "a foo b", 1},
    {"\\\\bfoo\\\\b", "afoo", 0},
    {"\\\\Boo", "foo", 1},
    {"^\\\\.\\\\/\\\\$$", "./$", 1},
    {"^\\\\x41\\\\u0042\\\\u{43}$", "ABC", 1},
    {"^\\\\ud83d\\\\ude00$", "\xf0\x9f\x98\x80", 1},
    {"^\\\\t\\\\n$", "\\t\\n", 1},
    {"^\\\\-$", "-", 1},
    {"^[^@\\\\s]+@[^@\\\\s]+\\\\.[a-z]{2,}$", "me@example.org", 1},
    {"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
     "123e4567-e89b-12d3-a456-426614174000", 1},
    {"^(([a-z])+.)+[A-Z]([a-z])+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
    {"(", "", MO_EINVAL},
    {")", "", MO_EINVAL},
    {"*a", "", MO_EINVAL},
    {"a**", "", MO_EINVAL},
    {"[a", "", MO_EINVAL},
    {"[z-a]", "", MO_EINVAL},
    {"a{3,2}", "", MO_EINVAL},
    {"a{9999}", "", MO_EINVAL},
    {"(a{900}){900}", "", MO_EINVAL},
    {"((((a{9}){9}){9}){9}){9}", "", MO_EINVAL},
    {"(?=a)", "", MO_EINVAL},
    {"(?!a)", "", MO_EINVAL},
    {"(?<=a)b", "", MO_EINVAL},
    {"(?<name", "", MO_EINVAL},
    {"(a)\\\\1", "", MO_EINVAL},
    {"\\\\p{L}", "", MO_EINVAL},
    {"\\\\k<a>", "", MO_EINVAL},
    {"\\\\", "", MO_EINVAL},
    {"\\\\x4", "", MO_EINVAL},
    {"\\\\ud83d", "", MO_EINVAL},
    {"\\\\u{110000}", "", MO_EINVAL},
    {"((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))",
     "", MO_EINVAL},
};

static void regex_table(void **state)
{
    static struct mo_jregex r;
    struct mo_buf pb, tb;

    (void)state;
    mo_buf_init(&pb, 4096);
    mo_buf_init(&tb, 4096);
    for (size_t i = 0; i < MO_COUNT(patterns); i++) {
        uint64_t steps = 100000;
        char quoted[512];
        struct mo_json p, t;
        int rc;

        snprintf(quoted, sizeof(quoted), "'%s'", patterns[i].pattern);
        p = json(&pb, quoted);
        snprintf(quoted, sizeof(quoted), "'%s'", patterns[i].text);
        t = json(&tb, quoted);
        rc = mo_jregex_compile(&r, p);
        if (rc == 0)
            rc = mo_jregex_search(&r, t, &steps);
        if (rc != patterns[i].found)
            fail_msg("row '%s' '%s': %d", patterns[i].pattern, patterns[i].text,
                     rc);
    }
    mo_buf_fini(&pb);
    mo_buf_fini(&tb);
}

static const struct {
    const char *format, *text;
    int rc;
} formats[] = {
    {"date", "2024-12-31", 1},
    {"date", "2024-13-01", 0},
    {"date", "2100-02-29", 0},
    {"date", "2000-02-29", 1},
    {"date", "2024-1-1", 0},
    {"date", "2024-01-01x", 0},
    {"time", "23:59:60Z", 1},
    {"time", "24:00:00Z", 0},
    {"time", "12:00:00", 0},
    {"date-time", "2024-01-01T12:00:00.5+01:00", 1},
    {"date-time", "2024-01-01t12:00:00z", 1},
    {"date-time", "2024-01-01T12:00:00.Z", 0},
    {"date-time", "2024-01-01", 0},
    {"email", "a@b", 1},
    {"email", "a.b+c@example.org", 1},
    {"email", "\"a @ b\"@example.org", 1},
    {"email", "@b", 0},
    {"email", "a@", 0},
    {"email", "a@b@c", 0},
    {"email", "a b@c", 0},
    {"email", ".a@b", 0},
    {"uri", "https://example.org/a?b#c", 1},
    {"uri", "urn:isbn:1", 1},
    {"uri", "mailto:a@b", 1},
    {"uri", "/relative", 0},
    {"uri", "http://a b", 0},
    {"uri", "http://a/%2", 0},
    {"uri", "1a:b", 0},
    {"uri", "", 0},
    {"uri-reference", "/relative", 1},
    {"uri-reference", "a\\b", 0},
    {"uuid", "123e4567-e89b-12d3-a456-426614174000", 1},
    {"uuid", "123e4567-e89b-12d3-a456-42661417400g", 0},
    {"ipv4", "127.0.0.1", 1},
    {"ipv4", "127.0.0", 0},
    {"ipv4", "127.0.0.256", 0},
    {"ipv4", "127.0.0.01", 0},
    {"ipv4", "1.2.3.4.5", 0},
    {"hostname", "x", -1},
};

static void format_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(formats); i++) {
        int rc = mo_jformat(mo_span_cstr(formats[i].format),
                            mo_span_cstr(formats[i].text));

        check_row(formats[i].text, rc == formats[i].rc);
    }
}

/* --- limits -------------------------------------------------------------- */

static const struct row hostile[] = {
    {"{'$ref':'#'}", "1", "the schema nests too deep"},
    {"{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'}},"
     "'$ref':'#/$defs/a'}",
     "1", "the schema nests too deep"},
    {"{'anyOf':[{'$ref':'#'},{'$ref':'#'}]}", "1", "the schema nests too deep"},
    {"{'$defs':{'a':{'anyOf':[{'$ref':'#/$defs/b'},{'$ref':'#/$defs/b'}]},"
     "'b':{'anyOf':[{'$ref':'#/$defs/c'},{'$ref':'#/$defs/c'}]},"
     "'c':{'anyOf':[{'$ref':'#/$defs/d'},{'$ref':'#/$defs/d'}]},"
     "'d':{'anyOf':[{'$ref':'#/$defs/e'},{'$ref':'#/$defs/e'}]},"
     "'e':{'anyOf':[{'$ref':'#/$defs/f'},{'$ref':'#/$defs/f'}]},"
     "'f':{'anyOf':[{'$ref':'#/$defs/g'},{'$ref':'#/$defs/g'}]},"
     "'g':{'anyOf':[{'$ref':'#/$defs/h'},{'$ref':'#/$defs/h'}]},"
     "'h':{'allOf':[{'items':{'$ref':'#/$defs/a'}},"
     "{'items':{'$ref':'#/$defs/a'}},false]}},'$ref':'#/$defs/a'}",
     "[[[1]]]", "the schema takes too much work"},
};

static void limits(void **state)
{
    static struct mo_jschema_result r;
    struct mo_buf sb, vb;

    (void)state;
    mo_buf_init(&sb, 1 << 16);
    mo_buf_init(&vb, 1 << 16);
    for (size_t i = 0; i < MO_COUNT(hostile); i++) {
        struct mo_json schema = json(&sb, hostile[i].schema);
        struct mo_json value = json(&vb, hostile[i].value);
        struct mo_err e = {0};

        assert_int_equal(mo_jschema_check(schema, value, NULL, &r, &e),
                         MO_ETOOBIG);
        assert_false(r.valid);
        assert_string_equal(e.msg, hostile[i].error);
    }
    mo_buf_fini(&sb);
    mo_buf_fini(&vb);
}

/* [0,1,...,n-1], and the pattern and text that kill backtrackers. */
static void big_values(void **state)
{
    static struct mo_jschema_result r;
    struct mo_buf sb, vb;
    struct mo_json schema, value;

    (void)state;
    mo_buf_init(&sb, 1 << 16);
    mo_buf_init(&vb, 1 << 20);
    schema = json(&sb, "{'uniqueItems':true}");
    mo_buf_puts(&vb, "[0");
    for (int i = 1; i < 2000; i++)
        mo_buf_printf(&vb, ",%d", i);
    mo_buf_puts(&vb, "]");
    value = (struct mo_json){vb.p, vb.len};
    assert_int_equal(mo_jschema_check(schema, value, NULL, &r, NULL), 0);
    assert_true(r.valid);
    schema = json(&sb, "{'pattern':'^(a+)+$'}");
    mo_buf_reset(&vb);
    mo_buf_puts(&vb, "\"");
    for (int i = 0; i < 50000; i++)
        mo_buf_putc(&vb, 'a');
    mo_buf_puts(&vb, "!\"");
    value = (struct mo_json){vb.p, vb.len};
    assert_int_equal(mo_jschema_check(schema, value, NULL, &r, NULL), 0);
    assert_false(r.valid);
    schema = json(&sb, "{'pattern':'(a|aa|.){99}x'}");
    assert_int_equal(mo_jschema_check(schema, value, NULL, &r, NULL),
                     MO_ETOOBIG);
    mo_buf_fini(&sb);
    mo_buf_fini(&vb);
}

/* Long names, many errors: cut, counted, one line each, still UTF-8. */
static void reports(void **state)
{
    static struct mo_jschema_result r;
    struct mo_jschema_opts o = {.name = "arguments"};
    struct mo_buf sb, vb, text;
    struct mo_json schema, value;

    (void)state;
    mo_buf_init(&sb, 1 << 16);
    mo_buf_init(&vb, 1 << 16);
    mo_buf_init(&text, 1 << 16);
    schema = json(&sb, "{'items':{'type':'string'}}");
    value = json(&vb, "[1,2,3,4,5,6,7,8,9,10]");
    assert_int_equal(mo_jschema_check(schema, value, &o, &r, NULL), 0);
    assert_int_equal(r.nerrors, 10);
    assert_string_equal(r.errors[7].path, "arguments[7]");
    assert_int_equal(mo_jschema_put(&text, &r), 0);
    assert_true(mo_span_ends(mo_buf_view(&text), MO_SPAN("and 2 more\n")));

    schema = json(&sb, "{'additionalProperties':false}");
    mo_buf_reset(&vb);
    mo_buf_puts(&vb, "{\"");
    for (int i = 0; i < 200; i++)
        mo_buf_puts(&vb, "\xc3\xa9");
    mo_buf_puts(&vb, "\":1}");
    value = (struct mo_json){vb.p, vb.len};
    assert_int_equal(mo_jschema_check(schema, value, &o, &r, NULL), 0);
    assert_true(strlen(r.errors[0].path) < sizeof(r.errors[0].path));
    assert_true(
        mo_span_ends(mo_span_cstr(r.errors[0].path), MO_SPAN("\xa9...")));

    /* a shown value is cut at a character, wherever the limit falls */
    for (int shift = 0; shift < 4; shift++) {
        mo_buf_reset(&sb);
        mo_buf_printf(&sb, "{\"enum\":[\"%.*s", shift, "aaaa");
        for (int i = 0; i < 40; i++)
            mo_buf_puts(&sb, "\xf0\x9f\x98\x80");
        mo_buf_puts(&sb, "\"]}");
        schema = (struct mo_json){sb.p, sb.len};
        assert_int_equal(mo_jschema_check(schema, value, &o, &r, NULL), 0);
        assert_true(mo_utf8_valid(mo_span_cstr(r.errors[0].text)));
    }

    schema = json(&sb, "{'const':[1,\n2]}");
    value = json(&vb, "3");
    assert_int_equal(mo_jschema_check(schema, value, &o, &r, NULL), 0);
    assert_string_equal(r.errors[0].text, "must be [1, 2]");
    mo_buf_fini(&sb);
    mo_buf_fini(&vb);
    mo_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),        cmocka_unit_test(regex_table),
        cmocka_unit_test(format_table), cmocka_unit_test(limits),
        cmocka_unit_test(big_values),   cmocka_unit_test(reports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
