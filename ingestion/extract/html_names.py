"""What the classes, ids and headings of a page's parts say about them: words that site builders and themes use."""

import re
from functools import lru_cache


class Name:
    """Bits; plain numbers, because every element of a page is asked."""

    FURNITURE, CONSENT, BODY, NOTE, MAIN, BUTTON = 1, 2, 4, 8, 16, 32


class Door:
    """Bits of the two doors that a site shows to guests."""

    LOG_IN, SIGN_UP, BOTH = 1, 2, 3


_BEFORE, _AFTER = r"(?:^|[\s_-]|(?<=[a-z])(?=[A-Z]))", r"(?:$|[\s_-]|(?<=[a-z])(?=[A-Z]))"
_FURNITURE_WORDS = (
    r"nav(?:bar|igation|header|footer|links)?|menu|side-?bar|breadcrumbs?|footer|cookies?|consent|share|sharing|social|related|newsletter|subscribe|"
    r"advert(?:isement)?s?|promo|popup|modal|skip-link|toc-?nav|pagination|pager|printfooter|mw-editsection|headerlink|"
    r"(?:top|site|sticky|announcement|promo|hello)-?(?:bar|banner)|site-?header|back-?to-?top|login|sign-?up|site-?search|search-?form|cart|cta|"
    r"you-?may-?also-?like|recommend(?:ed|ations?)|read-?next|author-?(?:box|bio)|post-?tags|tag-?cloud|"
    r"comments-?(?:area|form)|comment-?(?:list|respond)|respond|disqus\w*|elementor-template"
)
_BODY_WORDS = (
    r"(?:post|entry|article|story|blog|page|main|topic|doc(?:ument)?)[-_]?(?:content|body|text)|article_?body|mw-content-text|"
    r"markdown-body|rst-content|theme-doc-markdown|md-content|refentry|sect1|chapter|appendix|preface"
)
_CONSENT_WORDS = r"cookie-?(?:banner|consent|notice|law|policy|bar|popup)|gdpr|cookiebot|didomi|usercentrics|onetrust|ot-sdk"
_NOTE_WORDS = r"admonition|callout|note|tip|warning|caution|danger|important|info|hint|sidenote|pull-?quote|alert"
_BUTTON_WORDS = r"btn\w*|button\w*|cta"
_TEASER = re.compile(
    r"\s*(?:related|recommended|explore (?:the )?(?:latest|more)|more (?:from|to explore|topics|articles|stories|posts|like)|"
    r"you (?:may|might) also|read (?:next|more)|keep reading|latest (?:posts|articles|news)|popular (?:posts|articles)|"
    r"recent (?:posts|comments)|inbound links|share this|follow us|leave a (?:reply|comment)|sign up|subscribe|"
    r"similar (?:posts|articles|items|products))\b",
    re.IGNORECASE,
)


_LOG_IN = re.compile(r"[/?=#.](?:log-?in|sign-?in)\b", re.IGNORECASE)
_SIGN_UP = re.compile(r"[/?=#.](?:register|registration|sign-?up|join)\b", re.IGNORECASE)


def _words(words: str) -> re.Pattern[str]:
    """As whole words, also where words are joined by hyphens, underscores or capitals: post-nav, site__nav, SiteNav."""
    return re.compile(f"{_BEFORE}(?i:{words}){_AFTER}")


_PATTERNS = {
    Name.FURNITURE: _words(_FURNITURE_WORDS),
    Name.CONSENT: _words(_CONSENT_WORDS),
    Name.BODY: _words(_BODY_WORDS),
    Name.NOTE: _words(_NOTE_WORDS),
    Name.BUTTON: _words(_BUTTON_WORDS),
}


@lru_cache(maxsize=8_192)
def name_of(names: str) -> int:
    """Of a class or id attribute. The pages of a site share their names, so they are looked at once."""
    found = 0
    for name, pattern in _PATTERNS.items():
        if pattern.search(names):
            found |= name
    return found


def starts_teaser(heading: str) -> bool:
    return _TEASER.match(heading) is not None


def door_of(href: str) -> int:
    return (Door.LOG_IN if _LOG_IN.search(href) else 0) | (Door.SIGN_UP if _SIGN_UP.search(href) else 0)
