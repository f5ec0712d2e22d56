/* Any text as YAML: it is refused, or becomes valid JSON. */
#include "codec/json/json.h"
#include "codec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    mo_autobuf struct mo_buf b = {.max = (size_t)1 << 20};
    struct mo_json_doc doc;

    if (mo_yaml_to_json(mo_span((const char *)p, n), &b, NULL) == 0)
        MO_BUG_ON(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) < 0);
    mo_buf_reset(&b);
    if (mo_yaml_core_to_json(mo_span((const char *)p, n), &b, NULL) == 0)
        MO_BUG_ON(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) < 0);
    return 0;
}
