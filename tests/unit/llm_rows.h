/* llm_rows.h - one stream per provider with thinking, text with unusual
 * characters, two calls and unknown events; and the entry it must become. */
#ifndef LLM_ROWS_H
#define LLM_ROWS_H

#include "agent/llm/llm_priv.h"

struct llm_row {
    const char *name;
    enum mo_llm_kind kind;
    const char *model;
    const char *stream;
    const char *text;    /* of the reply */
    const char *call[2]; /* name and arguments of the first */
    const char *has[4];  /* other text the entry must contain */
};

static const struct llm_row llm_rows[] = {
    {"claude",
     MO_LLM_CLAUDE,
     "claude-sonnet-5-5",
     "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":"
     "{\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":3,"
     "\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\r\n\r\n"
     "event: content_block_start\ndata: {\"type\":\"content_block_start\","
     "\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\","
     "\"signature\":\"\",\"new\":[1]}}\n\n"
     ": a comment\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
     "{\"type\":\"thinking_delta\",\"thinking\":\"hm \\ud83d\"}}\r\r"
     "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
     "{\"type\":\"thinking_delta\",\"thinking\":\"\\ude00\"}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
     "{\"type\":\"signature_delta\",\"signature\":\"old\"}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
     "{\"type\":\"signature_delta\",\"signature\":\"s1g\"}}\n\n"
     "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
     "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":"
     "{\"type\":\"text\",\"text\":\"Gr\"}}\n\n"
     "event: brand_new\ndata: {\"type\":\"brand_new\"}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"
     "{\"type\":\"text_delta\",\"text\":\"\xc3\xbc\xc3\x9f \\\"\\n\"}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"
     "{\"type\":\"other_delta\",\"text\":\"no\"}}\n\n"
     "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
     "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":"
     "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"w\",\"input\":{},"
     "\"caller\":{\"type\":\"direct\"}}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":"
     "{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":"
     "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":"
     "{\"type\":\"input_json_delta\",\"partial_json\":\"[1]}\"}}\n\n"
     "data: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
     "data: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":"
     "{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"v\",\"input\":{}}}"
     "\n\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n"
     "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
     "\"tool_use\"},\"usage\":{\"output_tokens\":42,\"input_tokens\":null}}\n\n"
     "data: {\"type\":\"message_stop\"}\n\n",
     "Gr\xc3\xbc\xc3\x9f \"\n",
     {"w", "{\"a\":[1]}"},
     {"\"thinking\":\"hm \\ud83d\\ude00\",\"signature\":\"s1g\"", "\"new\":[1]",
      "\"caller\":{\"type\":\"direct\"}",
      "\"usage\":{\"input\":15,\"output\":42,\"cacheRead\":3,"
      "\"cacheWrite\":2"}},
    {"gemini",
     MO_LLM_GEMINI,
     "gemini-4-argon",
     "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":"
     "[{\"text\":\"hm \",\"thought\":true}]}}],\"usageMetadata\":"
     "{\"promptTokenCount\":10,\"candidatesTokenCount\":1}}\r\n\r\n"
     "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"so\","
     "\"thought\":true},{\"text\":\"Gr\"}]}}]}\n\n"
     ": hi\n\ndata: {\"unknown\":1}\n\n"
     "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":"
     "\"\xc3\xbc\xc3\x9f \\\"\\n\"}]}}]}\r\r"
     "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":"
     "{\"id\":\"f1\",\"name\":\"w\",\"args\":{\"a\":[1]}},"
     "\"thoughtSignature\":\"c2ln\",\"new\":{}},{\"functionCall\":"
     "{\"name\":\"v\"}},{\"executableCode\":{\"code\":\"x\"}}]}}]}\n\n"
     "data: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":"
     "\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":10,"
     "\"cachedContentTokenCount\":4,\"candidatesTokenCount\":7,"
     "\"thoughtsTokenCount\":5}}\n\n",
     "Gr\xc3\xbc\xc3\x9f \"\n",
     {"w", "{\"a\":[1]}"},
     {"\"text\":\"hm so\",\"thought\":true", "\"thoughtSignature\":\"c2ln\"",
      "\"executableCode\":{\"code\":\"x\"}",
      "\"usage\":{\"input\":10,\"output\":12,\"cacheRead\":4"}},
    {"chat",
     MO_LLM_COMPATIBLE,
     "qwen3:8b",
     ": PROCESSING\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\","
     "\"content\":\"\"}}]}\n\n"
     "data: {\"choices\":[{\"delta\":{\"content\":\"\\n\\u003cth\"}}]}\n\n"
     "data: {\"choices\":[{\"delta\":{\"content\":\"ink>hm so</th\"}}]}\r\r"
     "data: {\"choices\":[{\"delta\":{\"content\":\"ink>Gr\"}}]}\r\n\r\n"
     "data: {\"choices\":[{\"delta\":{\"content\":\"\xc3\xbc\xc3\x9f \\\"\\n\""
     "}}]}\n\n"
     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":"
     "\"c1\",\"type\":\"function\",\"x\":1,\"function\":{\"name\":\"w\","
     "\"arguments\":\"{\\\"a\\\":\"}},{\"index\":1,\"id\":\"c2\",\"function\":"
     "{\"name\":\"v\",\"arguments\":\"\"}}]}}]}\n\n"
     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
     "\"function\":{\"arguments\":\"[1]}\"}}]}}]}\n\n"
     "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
     "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":20,"
     "\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":5}}}"
     "\n\ndata: [DONE]\n\n",
     "Gr\xc3\xbc\xc3\x9f \"\n",
     {"w", "{\"a\":[1]}"},
     {"\"type\":\"thinking\",\"text\":\"hm so\"", "\"x\":1", "\"id\":\"c2\"",
      "\"usage\":{\"input\":20,\"output\":7,\"cacheRead\":5"}},
    {"responses",
     MO_LLM_OPENAI,
     "gpt-6.1-sol",
     "event: response.created\ndata: {\"type\":\"response.created\"}\n\n"
     "data: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":"
     "\"hm so\"}\n\n"
     "data: {\"type\":\"response.output_item.done\",\"output_index\":0,"
     "\"item\":{\"id\":\"rs\",\"type\":\"reasoning\",\"summary\":[{\"text\":"
     "\"hm so\"}],\"encrypted_content\":\"gAAA\"}}\r\n\r\n"
     "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Gr\"}\n\n"
     "data: {\"type\":\"response.brand_new\"}\n\n"
     "data: {\"type\":\"response.output_text.delta\",\"delta\":"
     "\"\xc3\xbc\xc3\x9f \\\"\\n\"}\n\n"
     "data: {\"type\":\"response.output_item.done\",\"output_index\":3,"
     "\"item\":{\"type\":\"function_call\",\"id\":\"fc2\",\"call_id\":\"c2\","
     "\"name\":\"v\",\"arguments\":\"\"}}\n\n"
     "data: {\"type\":\"response.output_item.done\",\"output_index\":1,"
     "\"item\":{\"id\":\"m\",\"type\":\"message\",\"content\":[{\"type\":"
     "\"output_text\",\"text\":\"Gr\xc3\xbc\xc3\x9f \\\"\\n\"}]}}\n\n"
     "data: {\"type\":\"response.output_item.done\",\"output_index\":2,"
     "\"item\":{\"type\":\"function_call\",\"id\":\"fc1\",\"call_id\":\"c1\","
     "\"name\":\"w\",\"arguments\":\"{\\\"a\\\":[1]}\"}}\r\r"
     "data: {\"type\":\"response.completed\",\"response\":{\"status\":"
     "\"completed\",\"usage\":{\"input_tokens\":30,\"output_tokens\":9,"
     "\"input_tokens_details\":{\"cached_tokens\":6}}}}\n\n",
     "Gr\xc3\xbc\xc3\x9f \"\n",
     {"w", "{\"a\":[1]}"},
     {"\"encrypted_content\":\"gAAA\"", "\"id\":\"fc2\"",
      "\"type\":\"thinking\",\"text\":\"hm so\"",
      "\"usage\":{\"input\":30,\"output\":9,\"cacheRead\":6"}},
};

/* Reads a stream through its wire, as llm_x.c does. */
struct llm_read {
    struct mo_llm_in in;
    struct mo_sse sse;
    struct mo_err e;
    bool failed;
};

static inline void llm_read_init(struct llm_read *r, enum mo_llm_kind k,
                                 const char *model, const struct mo_llm_cb *cb,
                                 void *ctx)
{
    r->failed = false;
    mo_sse_init(&r->sse, (size_t)1024 * 1024);
    mo_llm_in_init(&r->in, mo_llm_wire(k, model), k, cb, ctx);
    memcpy(r->in.key, "key", 4);
}

static inline void llm_read_fini(struct llm_read *r)
{
    mo_llm_in_fini(&r->in);
    mo_sse_fini(&r->sse);
}

static inline void llm_read_feed(struct llm_read *r, struct mo_span s)
{
    struct mo_sse_event ev;

    while (!r->failed && !r->in.whole) {
        enum mo_sse_result got = mo_sse_next(&r->sse, &s, &ev, &r->e);

        if (got == MO_SSE_MORE)
            return;
        if (got == MO_SSE_ERROR || mo_llm_event(&r->in, ev.data, &r->e) < 0)
            r->failed = true;
    }
}

#endif
