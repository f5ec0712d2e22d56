/* The intrusive list: order, removal in every way, splice. */
#include "base/list.h"
#include "mo_test.h"

struct item {
    char c;
    struct mo_list node;
};

/* The list's letters in order, checked backwards too. */
static void expect(struct mo_list *head, const char *want)
{
    struct mo_list *n = head->next;

    for (size_t i = 0; want[i]; i++, n = n->next) {
        assert_ptr_not_equal(n, head);
        assert_int_equal(mo_container_of(n, struct item, node)->c, want[i]);
        assert_ptr_equal(n->next->prev, n);
        assert_ptr_equal(n->prev->next, n);
    }
    assert_ptr_equal(n, head);
}

static void fill(struct mo_list *head, struct item *items, const char *letters)
{
    mo_list_init(head);
    for (size_t i = 0; letters[i]; i++) {
        items[i].c = letters[i];
        mo_list_push(head, &items[i].node);
    }
}

static void push_keeps_order(void **s)
{
    struct item it[3];
    struct mo_list head;

    (void)s;
    mo_list_init(&head);
    assert_true(mo_list_empty(&head));
    assert_null(mo_list_first(&head, struct item, node));
    fill(&head, it, "abc");
    assert_false(mo_list_empty(&head));
    assert_ptr_equal(mo_list_first(&head, struct item, node), &it[0]);
    expect(&head, "abc");
}

static void del_twice_is_harmless(void **s)
{
    static const char *const left[] = {"bc", "ac", "ab"};
    struct item it[3];
    struct mo_list head;

    (void)s;
    for (size_t i = 0; i < 3; i++) {
        fill(&head, it, "abc");
        mo_list_del(&it[i].node);
        mo_list_del(&it[i].node);
        assert_true(mo_list_empty(&it[i].node));
        expect(&head, left[i]);
    }
}

static void splice_moves_all(void **s)
{
    static const struct {
        const char *dst, *src, *want;
    } rows[] = {
        {"", "", ""}, {"a", "", "a"}, {"", "ab", "ab"}, {"ab", "cd", "abcd"}};
    struct item d[4], c[4];
    struct mo_list dst, src;

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        fill(&dst, d, rows[i].dst);
        fill(&src, c, rows[i].src);
        mo_list_splice(&dst, &src);
        expect(&dst, rows[i].want);
        assert_true(mo_list_empty(&src));
    }
}

static void each_safe_may_free(void **s)
{
    struct mo_list head;
    unsigned seen = 0;

    (void)s;
    mo_list_init(&head);
    for (int i = 0; i < 5; i++) {
        struct item *it = mo_new(struct item);

        assert_non_null(it);
        mo_list_push(&head, &it->node);
    }
    mo_list_each (n, &head) {
        seen++;
    }
    assert_int_equal(seen, 5);
    mo_list_each_safe (n, &head) {
        mo_list_del(n);
        mo_free(mo_container_of(n, struct item, node));
    }
    assert_true(mo_list_empty(&head));
}

static void each_may_name_its_type(void **s)
{
    struct item it[3];
    struct mo_list head;
    char seen[8] = "";
    size_t n = 0;

    (void)s;
    mo_list_init(&head);
    mo_list_each_entry (x, &head, struct item, node)
        fail_msg("%c is in an empty list", x->c);
    fill(&head, it, "abc");
    mo_list_each_entry (x, &head, struct item, node)
        seen[n++] = x->c;
    mo_list_each_entry_safe (x, &head, struct item, node) {
        seen[n++] = x->c;
        if (x->c != 'b')
            mo_list_del(&x->node);
    }
    assert_string_equal(seen, "abcabc");
    expect(&head, "b");
}

static void structs_are_walked(void **s)
{
    struct mo_list head;
    struct item it[3];
    char seen[4] = "";
    size_t n = 0;

    (void)s;
    fill(&head, it, "");
    mo_list_each_entry (i, &head, struct item, node)
        seen[n++] = i->c;
    assert_int_equal(n, 0);
    fill(&head, it, "abc");
    mo_list_each_entry (i, &head, struct item, node)
        seen[n++] = i->c;
    assert_string_equal(seen, "abc");
    mo_list_each_entry_safe (i, &head, struct item, node) {
        if (i->c != 'b')
            mo_list_del(&i->node);
    }
    expect(&head, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_keeps_order),
        cmocka_unit_test(del_twice_is_harmless),
        cmocka_unit_test(splice_moves_all),
        cmocka_unit_test(each_safe_may_free),
        cmocka_unit_test(each_may_name_its_type),
        cmocka_unit_test(structs_are_walked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
