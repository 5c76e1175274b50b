"""Which script a Chinese text is written in: simplified (Hans) or traditional (Hant) characters."""

from __future__ import annotations

from typing import Literal

Script = Literal["Hans", "Hant"]

# The 350 pairs of characters, each of which occurs in one of the two scripts alone, that are the most frequent in
# the starter model's corpus, most frequent first. The pairs are OpenCC's (STCharacters, TSCharacters and TWVariants;
# Apache-2.0) without those characters that Taiwan or Hong Kong writes the simplified way, such as 群 and 秘, and
# without those that stand for several traditional ones.
_HANS = frozenset(
    "数为这会对时将来类们应设组码过现实该请调进标则开块动内间选关变语与没编从义点认项试无务运单创传处样测"
    "问给结属输备构节错电导说态写显号汤计吗机还网换称体状误执统图许启异检库转装载题记区两读况线学见连经环"
    "译键阅话级头让条择带献释档贡车页访视仅长国议验响达联书径层递终扩总预闭员规欢缓决简删声览识赖细储报继"
    "详产帮协续辑触较络离浏败场资弃锁绑压听断强脚风够气频优缩独权树边随论护拟际册觉击门习远儿踪钮围负静监"
    "账队钱顺软询额东诉观词约虚难买丽玛盖邮热专盘尔减费隐旧亲维绝逻业课举爱归虑顶画乐杂马满夹谁栈销补轻滤"
    "严灯迟师丢帧医虽绍讲兴拥讨双饭饰缀险坏笔暂赋办骤谢湿质订颜临阶桩织蓝栏摄张亚责审紧妈础扫钩抛红纯遥辆"
    "侧卫练刚飞弹轮岁稳贝鱼宽仓馆脑疗唤园迁评驱诊伤担礼积惯购猫仪麦战圆谈阳叠灵凭却纸洁领绘贴损兰顿训镜滚"
)
_HANT = frozenset(
    "數為這會對時將來類們應設組碼過現實該請調進標則開塊動內間選關變語與沒編從義點認項試無務運單創傳處樣測"
    "問給結屬輸備構節錯電導說態寫顯號湯計嗎機還網換稱體狀誤執統圖許啟異檢庫轉裝載題記區兩讀況線學見連經環"
    "譯鍵閱話級頭讓條擇帶獻釋檔貢車頁訪視僅長國議驗響達聯書徑層遞終擴總預閉員規歡緩決簡刪聲覽識賴細儲報繼"
    "詳產幫協續輯觸較絡離瀏敗場資棄鎖綁壓聽斷強腳風夠氣頻優縮獨權樹邊隨論護擬際冊覺擊門習遠兒蹤鈕圍負靜監"
    "賬隊錢順軟詢額東訴觀詞約虛難買麗瑪蓋郵熱專盤爾減費隱舊親維絕邏業課舉愛歸慮頂畫樂雜馬滿夾誰棧銷補輕濾"
    "嚴燈遲師丟幀醫雖紹講興擁討雙飯飾綴險壞筆暫賦辦驟謝溼質訂顏臨階樁織藍欄攝張亞責審緊媽礎掃鉤拋紅純遙輛"
    "側衛練剛飛彈輪歲穩貝魚寬倉館腦療喚園遷評驅診傷擔禮積慣購貓儀麥戰圓談陽疊靈憑卻紙潔領繪貼損蘭頓訓鏡滾"
)
_TOLERATED = 8  # characters of its own script for each of the other's: a name may be written in that


def script_of(text: str) -> Script | None:
    """The script that most of the telling characters belong to; None where there are none, or as many of both."""
    hans, hant = sum(map(_HANS.__contains__, text)), sum(map(_HANT.__contains__, text))
    if hans == hant:
        return None
    return "Hans" if hans > hant else "Hant"


def is_in_script(text: str, script: Script) -> bool:
    """Whether a text may pass for this script: True, too, where nothing in it tells the two apart."""
    own, other = (_HANS, _HANT) if script == "Hans" else (_HANT, _HANS)
    return sum(map(other.__contains__, text)) * _TOLERATED <= sum(map(own.__contains__, text))
